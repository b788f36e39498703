use serde_json::{Value, json};

use super::*;
use crate::supply::Template;
use crate::testing::NoLauncher;

fn object(value: Value) -> Fields {
    let Value::Object(fields) = value else { panic!("{value}") };
    fields
}

fn read_with(defaults: Value, template: Option<&str>, said: Value) -> Result<(Job, Lane), Vec<String>> {
    let template = template.map(|text| Template::parse(text).unwrap());
    let defaults = object(defaults);
    let common =
        Common { defaults: &defaults, template: template.as_ref(), launcher: &NoLauncher, travels: false };
    Job::read(7, object(said), &common)
        .map_err(|faults| faults.into_iter().map(|fault| fault.to_string()).collect())
}

fn read(said: Value) -> Result<(Job, Lane), Vec<String>> {
    read_with(json!({}), None, said)
}

#[test]
fn a_job_has_an_id_options_and_a_place() {
    let (job, lane) = read(json!({"prompt": "a"})).unwrap();
    assert_eq!((job.id.as_str(), job.line, job.place, lane), ("7", 7, Place::Dir, Lane::Free));
    let (job, lane) = read(json!({"id": 5, "prompt": "a", "approval": "yolo", "dir": "/x"})).unwrap();
    assert_eq!((job.id.as_str(), lane), ("5", Lane::In("/x".into())));
    let (_, lane) = read(json!({"prompt": "a", "approval": "yolo", "shared": true})).unwrap();
    assert_eq!(lane, Lane::Free);
    let (job, lane) = read(json!({"prompt": "a", "approval": "yolo", "copy": true})).unwrap();
    assert_eq!((job.place, lane), (Place::Copy, Lane::Free));
    let (job, _) = read(json!({"prompt": "a", "git": {"url": "/r.git"}, "dir": "sub/dir"})).unwrap();
    let checkout = Checkout { url: "/r.git".into(), reference: "HEAD".into(), dir: "sub/dir".into() };
    assert_eq!((job.place, job.options.dir), (Place::Git(checkout), None));
}

#[test]
fn all_that_is_wrong_with_a_job_is_told() {
    let wrong = |said| read(said).unwrap_err();
    assert_eq!(
        wrong(json!({"id": [], "copy": "yes", "promt": "a"})),
        [
            "id is neither a text nor a whole number",
            "copy: true or false is needed",
            "there is no option `promt`",
        ]
    );
    for (id, why) in [(json!(""), "id is empty"), (json!("a\nb"), "id has a control character in it")] {
        assert_eq!(wrong(json!({"id": id, "prompt": "a"})), [why]);
    }
    let git = |git: Value, dir: &str| wrong(json!({"prompt": "a", "git": git, "dir": dir})).remove(0);
    assert_eq!(git(json!("x"), "."), "git: an object is needed");
    assert_eq!(git(json!({"ref": "main"}), "."), "git: url is missing");
    assert_eq!(git(json!({"url": "--upload-pack=x"}), "."), "git: url cannot be \"--upload-pack=x\"");
    for url in ["ext::sh -c x", "fd::17", "helper://user:pass@host/x", "ext::sh://x"] {
        let said = git(json!({"url": url}), ".");
        assert!(said.ends_with(" is no address of a repository") && !said.contains("pass"), "{said}");
    }
    assert_eq!(git(json!({"url": "u", "ref": "-x"}), "."), "git: ref cannot be \"-x\"");
    assert_eq!(git(json!({"url": "u", "branch": "b"}), "."), "git: there is no branch");
    assert_eq!(git(json!({"url": "u"}), "../x"), "dir: \"../x\" is no directory inside of the repository");
    assert_eq!(
        wrong(json!({"prompt": "a", "copy": true, "git": {"url": "u"}})),
        ["copy and git cannot be given together"]
    );
}

#[test]
fn outputs_belong_to_a_place_of_its_own_and_make_another_job() {
    let (job, _) = read(json!({"prompt": "a", "copy": true, "outputs": ["./dist/", "r.md"]})).unwrap();
    assert_eq!(job.outputs.patterns(), ["dist", "r.md"]);
    let without = read(json!({"prompt": "a", "copy": true})).unwrap().0;
    let empty = read(json!({"prompt": "a", "copy": true, "outputs": []})).unwrap().0;
    assert_eq!(empty.mark, without.mark);
    assert_ne!(job.mark, without.mark);
    assert_eq!(
        read(json!({"prompt": "a", "outputs": ["r.md"]})).unwrap_err(),
        ["outputs are for jobs with a place of their own"]
    );
    assert_eq!(
        read(json!({"prompt": "a", "copy": true, "outputs": ["../x"]})).unwrap_err(),
        ["outputs: \"../x\" is no path below its directory"]
    );
}

#[test]
fn a_job_wins_over_the_defaults_and_null_takes_one_away() {
    let defaults = || json!({"trust": true, "approval": "yolo", "prompt": "default", "copy": true});
    let (job, _) = read_with(defaults(), None, json!({"approval": "plan", "copy": false})).unwrap();
    assert_eq!(job.prompt, "default".into());
    assert_eq!(serde_json::to_value(job.options).unwrap(), json!({"trust": true, "approval": "plan"}));
    assert_eq!(job.place, Place::Dir);
    let (job, _) =
        read_with(defaults(), None, json!({"trust": null, "prompt_file": "/etc/hostname"})).unwrap();
    assert_eq!(job.prompt, Prompt::File("/etc/hostname".into()));
    assert_eq!(serde_json::to_value(job.options).unwrap(), json!({"approval": "yolo"}));
}

#[test]
fn a_job_is_known_again_whatever_the_order_and_another_is_not() {
    let mark = |said| read(said).unwrap().0.mark;
    let one = mark(json!({"prompt": "a", "dir": "/x", "schema": {"b": 1, "a": 2}}));
    assert_eq!(mark(json!({"schema": {"a": 2, "b": 1}, "dir": "/x", "prompt": "a"})), one);
    assert_eq!(mark(json!({"id": "other", "prompt": "a", "dir": "/x", "schema": {"a": 2, "b": 1}})), one);
    for other in [
        json!({"prompt": "b", "dir": "/x", "schema": {"a": 2, "b": 1}}),
        json!({"prompt": "a", "dir": "/y", "schema": {"a": 2, "b": 1}}),
        json!({"prompt": "a", "dir": "/x", "schema": {"a": 2, "b": 1}, "copy": true}),
        json!({"prompt": "a", "schema": {"a": 2, "b": 1}, "git": {"url": "u"}}),
        json!({"prompt": "a", "dir": "/x", "schema": {"a": 2, "b": 1}, "copy": true, "outputs": "x"}),
    ] {
        assert_ne!(mark(other.clone()), one, "{other}");
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("prompt");
    let of_file = || mark(json!({"prompt_file": file}));
    std::fs::write(&file, "one").unwrap();
    let before = of_file();
    std::fs::write(&file, "two").unwrap();
    assert_ne!(of_file(), before);
    std::fs::remove_file(&file).unwrap();
    assert!(read(json!({"prompt_file": file})).unwrap_err()[0].contains("No such file"));
}

/// Journals have it: another way to compute it would do all jobs of a batch again.
#[test]
fn the_mark_is_of_what_is_written_whatever_it_means() {
    let written = json!({"trust": true, "prompt": "a", "dir": "/x", "timeout": 90, "max_turns": 3, "copy": true, "outputs": "out"});
    assert_eq!(read(written).unwrap().0.mark.to_string(), "0e951fc3499f8b3821019873d635ffaf");
}

#[test]
fn a_mark_is_read_from_its_own_text_only() {
    let mark = Mark::of(&[b"a"]);
    assert_eq!(mark.to_string().parse(), Ok(mark));
    for text in ["", "00", &"+f".repeat(16), &"é".repeat(16), &"0".repeat(33)] {
        assert_eq!(text.parse::<Mark>(), Err(BadMark), "{text}");
    }
    assert_eq!(BadMark.to_string(), "a mark has 32 hexadecimal digits");
}

#[test]
fn a_template_makes_the_prompt_of_what_the_job_says() {
    let filled = |template, said| read_with(json!({}), Some(template), said).map(|(job, _)| job.prompt);
    assert_eq!(
        filled("Review {file} in {dir}.", json!({"file": "a.rs", "dir": "/x"})).unwrap(),
        "Review a.rs in /x.".into()
    );
    assert_eq!(filled("{n}: {{{prompt}}}", json!({"n": 3, "prompt": "hi"})).unwrap(), "3: {hi}".into());
    assert_eq!(filled("{ file }", json!({"file": "{x}"})).unwrap(), "{x}".into());
    assert_eq!(filled("{file}", json!({})).unwrap_err()[0], "the template needs file, which is not given");
    assert_eq!(
        filled("{file}", json!({"file": "a", "prompt": "b"})).unwrap_err(),
        ["prompt is given, and the template has no place for it", "there is no option `file`"]
    );
    for bad in ["no field", "{", "}", "{}", "a {b", "{a{b}}"] {
        assert!(Template::parse(bad).is_err(), "{bad}");
    }
}

/// To write it anew: `UPDATE_SCHEMAS=1 cargo test -p alhena-batch committed`.
#[test]
fn the_committed_schema_of_jobs_is_up_to_date() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas/job.json");
    let expected = format!("{:#}\n", schema());
    if std::fs::read_to_string(&file).ok().as_deref() != Some(expected.as_str()) {
        assert!(std::env::var_os("UPDATE_SCHEMAS").is_some(), "stale; run this test with UPDATE_SCHEMAS=1");
        std::fs::write(&file, expected).unwrap();
    }
}
