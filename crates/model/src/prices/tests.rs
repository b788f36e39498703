use super::*;

fn tokens(prompt: u64, cached: u64, output: u64, thoughts: u64) -> Tokens {
    Tokens { prompt, cached, output, thoughts, tool: 0, total: prompt + output + thoughts }
}

fn cost(models: &[(&str, Tokens)], at: &str) -> Option<Cost> {
    let usage = Usage::of_models(models.iter().copied());
    Prices::shipped().unwrap().cost_of_sum(&usage, Timestamp::parse(at).unwrap())
}

const TODAY: &str = "2026-11-15T20:00:00.000Z";

fn exactly(amount: f64) -> Option<Cost> {
    Some(Cost { amount, lower_bound: false })
}

#[test]
fn cached_tokens_are_cheaper_and_thoughts_cost_as_output() {
    // (1000000 - 400000) * 0.3 + 400000 * 0.03 + (10000 + 90000) * 2.5, per million
    assert_eq!(
        cost(&[("gemini-2.5-flash", tokens(1_000_000, 400_000, 10_000, 90_000))], TODAY),
        exactly(0.442)
    );
}

#[test]
fn several_models_add_up_and_idle_ones_cost_nothing() {
    let used = [
        ("gemini-2.5-flash", tokens(1_000_000, 0, 0, 0)),
        ("gemini-2.5-flash-lite", tokens(0, 0, 1_000_000, 0)),
        ("never-priced", Tokens::default()),
    ];
    assert_eq!(cost(&used, TODAY), exactly(0.7));
}

#[test]
fn a_model_without_a_price_makes_the_whole_unknown() {
    assert_eq!(
        cost(&[("gemini-2.5-flash", tokens(1, 0, 1, 0)), ("mystery", tokens(1, 0, 1, 0))], TODAY),
        None
    );
    assert_eq!(cost(&[], TODAY), None);
}

#[test]
fn large_prompts_make_a_lower_bound() {
    assert_eq!(
        cost(&[("gemini-2.5-pro", tokens(400_000, 0, 0, 0))], TODAY),
        Some(Cost { amount: 0.5, lower_bound: true })
    );
    assert_eq!(cost(&[("gemini-2.5-pro", tokens(200_000, 0, 0, 0))], TODAY), exactly(0.25));
}

#[test]
fn a_promotion_ends_on_its_day() {
    let used = [("gemini-3.8-flash", tokens(1_000_000, 0, 0, 0))];
    assert_eq!(cost(&used, "2026-12-31T23:59:59.999Z"), exactly(0.75));
    assert_eq!(cost(&used, "2027-01-01T00:00:00.000Z"), exactly(1.5));
}

#[test]
fn every_price_says_where_it_comes_from_and_the_file_has_a_date() {
    let prices = Prices::shipped().unwrap();
    assert_eq!(
        (prices.date.as_str(), prices.currency.as_str(), prices.per_tokens),
        ("2026-11-15", "USD", 1_000_000)
    );
    for (name, price) in &prices.models {
        assert!(price.source.is_some(), "{name}");
        assert!(price.rates.cached.is_some_and(|cached| cached < price.rates.input), "{name}");
    }
}

#[test]
fn the_size_of_one_prompt_decides_what_its_tokens_cost() {
    let prices = Prices::shipped().unwrap();
    let at = Timestamp::parse(TODAY).unwrap();
    let cost = |prompt, prompts| {
        prices.cost("gemini-2.5-pro", &tokens(prompt, 0, 1_000_000, 0), prompts, at).unwrap()
    };
    let exactly = |amount| Cost { amount, lower_bound: false };
    assert_eq!(cost(200_000, Prompts::One), exactly(0.25 + 10.0));
    assert_eq!(cost(200_001, Prompts::One), exactly(200_001.0 * 2.5 / 1e6 + 15.0));
    assert_eq!(cost(400_000, Prompts::UpTo(200_000)), exactly(0.5 + 10.0));
    assert_eq!(cost(400_000, Prompts::Above(200_000)), exactly(1.0 + 15.0));
    for prompts in [Prompts::Summed, Prompts::UpTo(200_001), Prompts::Above(199_999)] {
        assert_eq!(cost(400_000, prompts), Cost { amount: 0.5 + 10.0, lower_bound: true }, "{prompts:?}");
    }
    assert_eq!(prices.cost("mystery", &tokens(1, 0, 1, 0), Prompts::One, at), None);
}

proptest::proptest! {
    /// Calls below the limit cost as much one by one as together, and never less the more there is of anything.
    #[test]
    fn costs_add_up(
        calls in proptest::collection::vec((0_u64..20_000, 0_u64..20_000, 0_u64..9_000, 0_u64..9_000), 1..10),
    ) {
        let prices = Prices::shipped().unwrap();
        let at = Timestamp::parse(TODAY).unwrap();
        let (mut each, mut sum) = (Cost::default(), Usage::default());
        for (prompt, cached, output, thoughts) in calls {
            let tokens = tokens(prompt, cached.min(prompt), output, thoughts + 1);
            each.add(prices.cost("gemini-2.5-pro", &tokens, Prompts::One, at).unwrap());
            let more = Tokens { output: output + 1, ..tokens };
            let dearer = prices.cost("gemini-2.5-pro", &more, Prompts::One, at).unwrap();
            let cost = prices.cost("gemini-2.5-pro", &tokens, Prompts::One, at).unwrap();
            proptest::prop_assert!(dearer.amount > cost.amount && cost.amount > 0.0);
            sum.add("gemini-2.5-pro", &tokens);
        }
        let together = prices.cost_of_sum(&sum, at).unwrap();
        proptest::prop_assert!((each.amount - together.amount).abs() < 1e-9);
    }
}

#[test]
fn a_table_that_would_switch_a_limit_off_is_refused() {
    let table = |per: &str, input: &str| {
        Prices::read(&format!(
            r#"{{"date": "2026-11-15", "currency": "USD", "per_tokens": {per}, "models": {{"m": {{"input": {input}, "output": 1}}}}}}"#
        ))
    };
    assert!(table("1000000", "0.3").is_ok());
    assert!(table("1000000", "0").is_ok());
    for (per, input) in [("0", "0.3"), ("1000000", "-1"), ("1000000", "1e308")] {
        assert!(table(per, input).is_err(), "{per} {input}");
    }
}
