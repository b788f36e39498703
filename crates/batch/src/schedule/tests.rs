use std::fs;
use std::path::Path;

use alhena_model::FailureKind;
use serde_json::json;

use super::*;
use crate::job::Fields;
use crate::supply::{Format, Setting};
use crate::testing::{Acts, Did, NoLauncher, bad, good, until_stopped};

struct Desk {
    dir: tempfile::TempDir,
}

impl Desk {
    fn new(jobs: &[serde_json::Value]) -> Self {
        let desk = Self { dir: tempfile::tempdir().unwrap() };
        desk.write(jobs);
        desk
    }

    fn write(&self, jobs: &[serde_json::Value]) {
        let text: String = jobs.iter().map(|job| format!("{job}\n")).collect();
        fs::write(self.dir.path().join("jobs"), text).unwrap();
    }

    fn results(&self) -> Vec<JobResult> {
        let text = fs::read_to_string(self.dir.path().join("results")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn ids(&self) -> Vec<String> {
        self.results().into_iter().map(|result| result.id).collect()
    }

    fn batch(&self, limits: Limits, perform: Arc<dyn Perform>) -> Result<(Batch, Control), Changed> {
        let supply = Supply::of_file(&self.dir.path().join("jobs"), setting()).unwrap();
        let journal = Journal::open(&self.dir.path().join("results")).unwrap();
        let (control, inbox) = control();
        Batch::new(supply, journal, limits, perform, (control.clone(), inbox)).map(|batch| (batch, control))
    }

    fn run(&self, limits: Limits, perform: Arc<dyn Perform>) -> Ended {
        self.batch(limits, perform).unwrap().0.run(&mut |_: &News, _: &Board| {})
    }
}

fn setting() -> Setting {
    Setting {
        format: Format::Lines,
        defaults: Fields::new(),
        template: None,
        launcher: Arc::new(NoLauncher),
        travels: false,
    }
}

fn limits(jobs: usize) -> Limits {
    Limits {
        jobs,
        retries: 2,
        max_cost: None,
        fail_fast: false,
        ordered: false,
        again_failed: false,
        again_changed: false,
    }
}

fn prompts(count: usize) -> Vec<serde_json::Value> {
    (0..count).map(|number| json!({"prompt": format!("{number}")})).collect()
}

#[test]
fn every_job_is_done_once_and_not_again_by_the_next_start() {
    let desk = Desk::new(&prompts(50));
    let (acts, did) = Acts::new(|_, _, _| good());
    let ended = desk.run(limits(4), acts.clone());
    assert!(ended.is_success());
    assert_eq!((ended.progress.succeeded, ended.progress.spent.tokens), (50, 500));
    drop(ended);
    let mut ids = desk.ids();
    ids.sort_by_key(|id| id.parse::<u32>().unwrap());
    assert_eq!(ids, (1..=50).map(|number| number.to_string()).collect::<Vec<_>>());
    let ended = desk.run(limits(4), acts);
    assert_eq!((ended.progress.before, ended.progress.succeeded, ended.is_success()), (50, 50, true));
    assert_eq!(did.try_iter().filter(|did| matches!(did, Did::Begin(..))).count(), 50);
}

#[test]
fn what_failed_is_left_alone_or_done_again_as_told_and_keeps_one_line() {
    let desk = Desk::new(&prompts(3));
    let (acts, _did) = Acts::new(|job, attempt, _| match (job.id.as_str(), attempt) {
        ("2", 1) => bad(FailureKind::TurnLimit),
        _ => good(),
    });
    let failed = desk.run(limits(1), acts.clone());
    assert_eq!((failed.is_success(), failed.left, failed.progress.failed), (false, 0, 1));
    drop(failed);
    assert_eq!(desk.run(limits(1), acts.clone()).progress.failed, 1);
    let ended = desk.run(Limits { again_failed: true, ..limits(1) }, acts);
    assert!(ended.is_success());
    assert_eq!(desk.ids(), ["1", "3", "2"]);
    let again = desk.results().pop().unwrap();
    assert_eq!((again.attempt, again.earlier.len()), (2, 1));
    assert_eq!(again.earlier[0].kind, Some(FailureKind::TurnLimit));
}

#[test]
fn what_is_done_again_is_repeated_as_often_as_at_first() {
    let desk = Desk::new(&prompts(1));
    let (acts, _did) = Acts::new(|_, _, _| bad(FailureKind::Crashed));
    let once = |again_failed| Limits { again_failed, retries: 1, ..limits(1) };
    for (again_failed, attempts) in [(false, 2), (true, 4), (true, 6)] {
        drop(desk.run(once(again_failed), acts.clone()));
        assert_eq!(desk.results().pop().unwrap().attempt, attempts);
    }
}

#[test]
fn jobs_that_changed_are_refused_unless_told() {
    let desk = Desk::new(&prompts(3));
    let (acts, did) = Acts::new(|_, _, _| good());
    drop(desk.run(limits(2), acts.clone()));
    desk.write(&[json!({"prompt": "0"}), json!({"prompt": "other"}), json!({"id": "new", "prompt": "x"})]);
    let before = fs::read(desk.dir.path().join("results")).unwrap();
    let Err(changed) = desk.batch(limits(2), acts.clone()) else { panic!() };
    assert_eq!(changed, Changed { changed: vec!["2".into()], gone: vec!["3".into()] });
    assert_eq!(fs::read(desk.dir.path().join("results")).unwrap(), before);
    let _done_before = did.try_iter().count();
    assert!(desk.run(Limits { again_changed: true, ..limits(1) }, acts).is_success());
    let begun: Vec<String> = did
        .try_iter()
        .filter_map(|did| match did {
            Did::Begin(id, _) => Some(id),
            Did::End(..) => None,
        })
        .collect();
    assert_eq!(begun, ["2", "new"]);
    assert_eq!(desk.results().len(), 4);
}

#[test]
fn what_may_pass_is_repeated_and_the_result_tells_of_it() {
    let desk = Desk::new(&prompts(2));
    let (acts, _did) = Acts::new(|job, attempt, _| match (job.id.as_str(), attempt) {
        ("1", 1) => bad(FailureKind::Api),
        ("2", _) => bad(FailureKind::Crashed),
        _ => good(),
    });
    let ended = desk.run(Limits { retries: 1, ..limits(2) }, acts);
    assert_eq!((ended.progress.succeeded, ended.progress.failed, ended.progress.repeated), (1, 1, 2));
    for result in desk.results() {
        assert_eq!((result.attempt, result.earlier.len()), (2, 1));
    }
}

#[test]
fn nobody_begins_while_the_api_told_one_to_wait() {
    let desk = Desk::new(&prompts(12));
    let wait = Duration::from_millis(300);
    let (acts, did) = Acts::new(move |job, attempt, _| match (job.id.as_str(), attempt) {
        ("3", 1) => {
            let mut outcome = bad(FailureKind::RateLimited);
            outcome.failure.as_mut().unwrap().retry_after_ms = Some(wait.as_millis() as u64);
            outcome
        }
        _ => good(),
    });
    let mut held = Vec::new();
    let (batch, _) = desk.batch(limits(1), acts).unwrap();
    let ended = batch.run(&mut |news: &News, _: &Board| {
        if let News::Held { ms } = news {
            held.push(*ms);
        }
    });
    assert!(ended.is_success());
    let [ms] = held.as_slice() else { panic!("{held:?}") };
    assert!(*ms <= 300);
    let told = |did: Did| match did {
        Did::End(id, when) if id == "3" => Some(when),
        _ => None,
    };
    let at = did.try_iter().find_map(told).unwrap();
    let late = did.try_iter().filter_map(|did| match did {
        Did::Begin(_, when) => Some(when),
        Did::End(..) => None,
    });
    assert!(late.min().unwrap() >= at + wait);
    assert_eq!(desk.results().iter().find(|result| result.id == "3").unwrap().attempt, 2);
}

#[test]
fn a_daily_quota_ends_the_batch_and_leaves_the_rest_to_another_day() {
    let desk = Desk::new(&prompts(10));
    let (acts, _did) = Acts::new(|job, _, _| match job.id.as_str() {
        "3" => {
            let mut outcome = bad(FailureKind::RateLimited);
            outcome.failure.as_mut().unwrap().daily_quota = true;
            outcome
        }
        _ => good(),
    });
    let ended = desk.run(limits(1), acts);
    assert!(matches!(ended.why, Some(Why::Quota)));
    assert_eq!((desk.ids(), ended.left), (vec!["1".to_owned(), "2".to_owned()], 8));
}

#[test]
fn jobs_in_one_place_go_one_after_another_and_others_beside_them() {
    let mut jobs: Vec<_> =
        (0..8).map(|n| json!({"prompt": format!("{n}"), "approval": "yolo", "dir": "/same"})).collect();
    jobs.push(json!({"prompt": "below", "approval": "yolo", "dir": "/same/below"}));
    jobs.push(json!({"prompt": "reads", "dir": "/same"}));
    let desk = Desk::new(&jobs);
    let (acts, did) = Acts::new(|_, _, _| {
        std::thread::sleep(Duration::from_millis(5));
        good()
    });
    assert!(desk.run(limits(8), acts).is_success());
    let mut writing = 0;
    for did in did.try_iter() {
        match did {
            Did::Begin(id, _) if id != "10" => writing += 1,
            Did::End(id, _) if id != "10" => writing -= 1,
            _ => {}
        }
        assert!(writing <= 1);
    }
}

#[test]
fn no_job_begins_when_the_batch_has_cost_what_it_may() {
    let desk = Desk::new(&prompts(10));
    let (acts, _did) = Acts::new(|_, _, _| good());
    let most = |cost| Limits { max_cost: Some(cost), ..limits(1) };
    let ended = desk.run(most(1.6), acts.clone());
    assert!(matches!(ended.why, Some(Why::Budget)));
    assert_eq!((ended.progress.succeeded, ended.left), (4, 6));
    drop(ended);
    // What was spent before counts.
    assert_eq!(desk.run(most(2.0), acts.clone()).progress.succeeded, 4);
    assert_eq!(desk.run(most(3.0), acts).progress.succeeded, 6);
}

#[test]
fn a_cost_that_is_not_known_cannot_be_limited() {
    let desk = Desk::new(&prompts(5));
    let (acts, _did) = Acts::new(|_, _, _| {
        let mut outcome = good();
        outcome.cost_usd = None;
        outcome
    });
    let ended = desk.run(Limits { max_cost: Some(100.0), ..limits(1) }, acts);
    assert!(matches!(ended.why, Some(Why::Unpriced)));
    assert_eq!(ended.progress.succeeded, 1);
}

#[test]
fn a_failure_can_be_the_end() {
    let desk = Desk::new(&prompts(10));
    let (acts, _did) = Acts::new(|job, _, _| if job.id == "2" { bad(FailureKind::Auth) } else { good() });
    let ended = desk.run(Limits { fail_fast: true, ..limits(1) }, acts);
    assert!(matches!(ended.why, Some(Why::FailFast)));
    assert_eq!((desk.ids(), ended.left), (vec!["1".to_owned(), "2".to_owned()], 8));
}

#[test]
fn results_are_in_the_order_of_jobs_when_told() {
    let desk = Desk::new(&prompts(20));
    let (acts, _did) = Acts::new(|job, _, _| {
        std::thread::sleep(Duration::from_millis(20 - job.line));
        good()
    });
    assert!(desk.run(Limits { ordered: true, ..limits(20) }, acts).is_success());
    assert_eq!(desk.ids(), (1..=20).map(|number| number.to_string()).collect::<Vec<_>>());
}

#[test]
fn one_wish_lets_those_that_run_finish_and_a_second_stops_them() {
    for twice in [false, true] {
        let desk = Desk::new(&prompts(10));
        let (acts, did) = Acts::new(move |_, _, watch| match twice {
            true => until_stopped(watch),
            false => good(),
        });
        let (batch, control) = desk.batch(limits(2), acts).unwrap();
        let ended = batch.run(&mut move |news: &News, _: &Board| {
            if matches!(news, News::Began { .. }) {
                control.drain();
                if twice {
                    control.stop(Stop::Gently);
                }
            }
        });
        assert!(matches!(ended.why, Some(Why::Interrupted)));
        let begun = did.try_iter().filter(|did| matches!(did, Did::Begin(..))).count();
        assert_eq!(begun, 2);
        assert_eq!(desk.results().len(), if twice { 0 } else { 2 });
    }
}

#[test]
fn results_that_cannot_be_written_end_the_batch_and_their_jobs_are_not_done() {
    let desk = Desk::new(&prompts(100));
    alhena_sys::signals::outlive_file_limits();
    let line = desk_line();
    // Room for ten and a half.
    let most = line * 21 / 2;
    let (acts, _did) = Acts::new(|_, _, _| good());
    alhena_sys::processes::limit_file_size(Some(most)).unwrap();
    let ended = desk.run(limits(3), acts.clone());
    alhena_sys::processes::limit_file_size(None).unwrap();
    assert!(matches!(ended.why, Some(Why::Journal(_))), "{:?}", ended.why);
    assert!(ended.unwritten > 0 && ended.left > 80);
    drop(ended);
    let kept = desk.results().len();
    assert!((1..=10).contains(&kept), "{kept}");
    assert!(desk.run(limits(3), acts).is_success());
    assert_eq!(desk.results().len(), 100);
}

/// How long a line is at least.
fn desk_line() -> u64 {
    let desk = Desk::new(&prompts(1));
    let (acts, _did) = Acts::new(|_, _, _| good());
    drop(desk.run(limits(1), acts));
    fs::metadata(desk.dir.path().join("results")).unwrap().len()
}

#[test]
fn a_stream_is_run_while_it_is_written_and_bad_lines_fail_alone() {
    use std::io::Write;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("results");
    let (acts, did) = Acts::new(|_, _, _| good());
    let once = |acts: Arc<Acts>, lines: &[&str]| {
        let (mut writer, reader) = alhena_sys::sockets::Stream::pair().unwrap();
        let (control, inbox) = control();
        let wakes = control.clone();
        let supply = Supply::of_stream(reader, setting(), move || wakes.wake()).unwrap();
        let journal = Journal::open(&path).unwrap();
        let batch = Batch::new(supply, journal, limits(2), acts, (control, inbox)).unwrap();
        let mut refused = Vec::new();
        let mut rest = lines.iter();
        // The next line is written when the one before is done.
        let mut give = move || match rest.next() {
            Some(line) => writeln!(writer, "{line}").unwrap(),
            None => writer.shutdown(std::net::Shutdown::Both).unwrap_or_default(),
        };
        give();
        let ended = batch.run(&mut |news: &News, _: &Board| match news {
            News::Done { .. } => give(),
            News::Refused { line, message, .. } => {
                refused.push(format!("{line}: {message}"));
                if message.contains("too") || message.contains("another") {
                    give();
                }
            }
            _ => {}
        });
        (ended.progress, ended.left, refused)
    };
    let lines =
        ["{\"prompt\": \"a\"}", "{\"id\": \"1\", \"prompt\": \"b\"}", "nonsense", "{\"prompt\": \"c\"}"];
    let (progress, left, refused) = once(acts.clone(), &lines);
    assert_eq!((progress.succeeded, progress.failed, progress.refused, left), (2, 1, 2, 0));
    assert_eq!(refused.len(), 2, "{refused:?}");
    let results = fs::read_to_string(&path).unwrap();
    assert_eq!(results.lines().count(), 3);
    assert!(results.contains("\"id\":\"line 3\",\"attempt\":0"));
    assert_eq!(did.try_iter().count(), 4);
}

/// What comes of lines that are all there already.
fn piped(path: &Path, lines: &str, acts: Arc<Acts>) -> (Ended, Vec<(String, u32, bool)>) {
    let (control, inbox) = control();
    let wakes = control.clone();
    let input = std::io::Cursor::new(lines.to_owned());
    let supply = Supply::of_stream(input, setting(), move || wakes.wake()).unwrap();
    let journal = Journal::open(path).unwrap();
    let batch = Batch::new(supply, journal, limits(1), acts, (control, inbox)).unwrap();
    let ended = batch.run(&mut |_: &News, _: &Board| {});
    let mut results: Vec<_> = fs::read_to_string(path)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<JobResult>(line).unwrap())
        .map(|result| (result.id.clone(), result.attempt, result.outcome.is_success()))
        .collect();
    results.sort();
    (ended, results)
}

fn expected(results: &[(&str, u32, bool)]) -> Vec<(String, u32, bool)> {
    results.iter().map(|(id, attempt, success)| ((*id).to_owned(), *attempt, *success)).collect()
}

#[test]
fn a_broken_line_takes_no_id_from_a_job_whichever_comes_first() {
    let dir = tempfile::tempdir().unwrap();
    let (acts, _did) = Acts::new(|_, _, _| good());
    let job = |id: &str| format!("{{\"id\": \"{id}\", \"prompt\": \"p\"}}\n");
    for (name, lines, results) in [
        ("after", format!("nonsense\n{}", job("1")), vec![("1", 1, true), ("line 1", 0, false)]),
        ("before", format!("{}nonsense\n", job("2")), vec![("2", 1, true), ("line 2", 0, false)]),
        ("of that name", format!("nonsense\n{}", job("line 1")), vec![("line 1", 1, true)]),
        ("of that name before", format!("{}nonsense\n", job("line 2")), vec![("line 2", 1, true)]),
        ("refused", format!("{{\"id\": \"a\"}}\n{}", job("a")), vec![("a", 1, true)]),
    ] {
        let (ended, there) = piped(&dir.path().join(name), &lines, acts.clone());
        assert_eq!(there, expected(&results), "{name}");
        assert_eq!((ended.progress.succeeded, ended.progress.refused, ended.left), (1, 1, 0), "{name}");
        let told = crate::summary::Summary::of(&ended);
        let figures = (told.jobs, told.succeeded, told.failed, told.refused, told.by_kind.len());
        assert_eq!(figures, (1, 1, 0, 1, 0), "{name}: each line is counted once");
    }
}

#[test]
fn a_line_that_was_refused_and_is_right_now_is_done_and_one_that_was_done_is_not_lost() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("results");
    let (acts, _did) = Acts::new(|_, _, _| good());
    let (_, refused) = piped(&path, "{\"id\": \"a\", \"promt\": \"p\"}\n{\"prompt\": \"q\"\n", acts.clone());
    assert_eq!(refused, expected(&[("a", 0, false), ("line 2", 0, false)]));
    let (ended, done) =
        piped(&path, "{\"id\": \"a\", \"prompt\": \"p\"}\n{\"prompt\": \"q\"}\n", acts.clone());
    assert!(ended.is_success());
    assert_eq!(done, expected(&[("2", 1, true), ("a", 1, true)]));
    drop(ended);
    let (ended, kept) = piped(&path, "{\"id\": \"a\", \"promt\": \"p\"}\n", acts);
    assert_eq!((ended.progress.refused, ended.progress.failed), (1, 0));
    assert_eq!(kept, done);
}

/// What is kept of a job is small, however long its prompt.
#[test]
fn ten_thousand_jobs_need_little_memory() {
    let prompt = "x".repeat(20_000);
    let jobs: Vec<_> = (0..10_000).map(|number| json!({"id": number, "prompt": prompt})).collect();
    let desk = Desk::new(&jobs);
    drop(jobs);
    let before = most_memory();
    let (acts, _did) = Acts::new(|_, _, _| good());
    assert!(desk.run(limits(64), acts).is_success());
    // The prompts alone are 200 MB.
    let more = most_memory().saturating_sub(before);
    assert!(more < 40 << 20, "{} MB", more >> 20);
    assert_eq!(desk.results().len(), 10_000);
}

fn most_memory() -> u64 {
    let status = fs::read_to_string(Path::new("/proc/self/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() << 10
}
