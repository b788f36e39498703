use serde_json::{Value, json};

use super::*;
use alhena_model::options::Choice as _;

struct AtWork {
    dir: tempfile::TempDir,
    admission: Admission,
}

fn worker(most: Approval) -> AtWork {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap().join("root");
    std::fs::create_dir_all(root.join("app/src")).unwrap();
    std::fs::create_dir(dir.path().join("secret")).unwrap();
    alhena_sys::files::symlink("../secret", root.join("way-out")).unwrap();
    alhena_sys::files::symlink("app", root.join("inside")).unwrap();
    AtWork { dir, admission: Admission::new(root, most, PathBuf::from("/opt/gemini")) }
}

fn read(options: Value) -> Result<JobEnvelope, SettingError> {
    let written = json!({
        "version": envelope::VERSION, "id": "a", "line": 1, "mark": "00112233445566778899aabbccddeeff",
        "options": options, "place": {"kind": "dir"},
    });
    JobEnvelope::read(written.to_string().as_bytes())
}

fn envelope(options: Value) -> JobEnvelope {
    read(options).unwrap()
}

fn admitted(worker: &AtWork, envelope: &JobEnvelope) -> Result<Job, String> {
    let folder = |name: &str| Ok(PathBuf::from("/folders").join(name));
    worker.admission.admit(envelope, folder).map_err(|error| error.to_string())
}

#[test]
fn what_is_let_in_works_below_the_root_with_the_workers_own_program() {
    let worker = worker(Approval::AutoEdit);
    let said = json!({"prompt": "p", "dir": "inside/src", "include_dir": ["app"], "approval": "acceptEdits"});
    let job = admitted(&worker, &envelope(said)).unwrap();
    assert_eq!(job.prompt, "p".into());
    let root = worker.admission.root.display().to_string();
    assert_eq!(
        serde_json::to_value(job.options).unwrap(),
        json!({"dir": format!("{root}/app/src"), "include_dir": [format!("{root}/app")],
            "approval": "auto-edit", "no_config": true, "gemini": "/opt/gemini"})
    );
    let job = admitted(&worker, &envelope(json!({"prompt": "p", "offline": true}))).unwrap();
    assert_eq!(
        serde_json::to_value(job.options).unwrap(),
        json!({"offline": true, "approval": "default", "dir": root, "no_config": true})
    );
    drop(worker.dir);
}

#[test]
fn nothing_leaves_the_root() {
    let worker = worker(Approval::Yolo);
    for dir in ["/etc", "..", "way-out", "app/../../secret", "nowhere", "app/../.."] {
        let refused = admitted(&worker, &envelope(json!({"prompt": "p", "dir": dir}))).unwrap_err();
        assert!(refused.starts_with("the worker refuses it: `dir`"), "{refused}");
        let refused = admitted(&worker, &envelope(json!({"prompt": "p", "include_dir": ["app", dir]})));
        assert!(refused.is_err(), "{dir}");
    }
    for url in ["/etc", "../secret", "way-out", "file:///etc", "ext::sh -c id", "-x", "--upload-pack=x"] {
        let place =
            envelope::Place::Git { url: url.to_owned(), reference: "HEAD".to_owned(), dir: String::new() };
        let other = JobEnvelope { place, ..envelope(json!({"prompt": "p"})) };
        assert!(admitted(&worker, &other).is_err(), "{url}");
    }
    for (reference, dir) in [("--all", ""), ("HEAD", "../x"), ("HEAD", "/etc"), (" ", "")] {
        let (url, reference, dir) = ("https://h/r".to_owned(), reference.to_owned(), dir.to_owned());
        let other = JobEnvelope {
            place: envelope::Place::Git { url, reference, dir },
            ..envelope(json!({"prompt": "p"}))
        };
        assert!(admitted(&worker, &other).is_err());
    }
}

#[test]
fn an_envelope_that_nobody_checked_before_is_refused_as_well() {
    let worker = worker(Approval::AutoEdit);
    // One of each kind; all that does not travel, and all that is more than the limit, is in the tests of the policy.
    let refused = [
        json!({"gemini": "/bin/sh"}),
        json!({"allow": ["shell(*)"]}),
        json!({"approval": "full_auto"}),
        json!({"output": "x"}),
        json!({"as": "text"}),
        json!({"prompt_file": "/etc/passwd"}),
        json!({"system_prompt_file": "/etc/passwd"}),
        json!({"schema": "/etc/passwd"}),
        json!({"approval": ["yolo"]}),
        json!({"approval": true}),
        json!({"dir": [5]}),
        json!({"dir": {"x": 1}}),
        json!({"no-such": 1}),
    ];
    for mut options in refused {
        options["prompt"] = "p".into();
        let refused = read(options.clone()).map_err(|error| error.to_string());
        let refused = refused.and_then(|envelope| admitted(&worker, &envelope)).unwrap_err();
        assert!(refused.starts_with("the worker refuses it: "), "{options}: {refused}");
    }
    assert!(read(json!({"prompt_file": "/etc/passwd"})).is_err());
    let other = JobEnvelope { version: envelope::VERSION + 1, ..envelope(json!({"prompt": "p"})) };
    assert!(admitted(&worker, &other).unwrap_err().contains("another release"));
    let markless = JobEnvelope { mark: "zz".to_owned(), ..envelope(json!({"prompt": "p"})) };
    assert!(admitted(&worker, &markless).is_err());
    let place = envelope::Place::Copy { folder: "f".to_owned() };
    let two = JobEnvelope { place, ..envelope(json!({"prompt": "p", "dir": "app"})) };
    assert!(admitted(&worker, &two).is_err());
}

#[test]
fn a_job_that_says_nothing_gets_no_more_than_the_worker_allows() {
    let mode = |most, said: Value| {
        let job = admitted(&worker(most), &envelope(said))?;
        Ok::<_, String>(job.options.approval.unwrap().name())
    };
    assert_eq!(mode(Approval::Plan, json!({"prompt": "p"})).unwrap(), "plan");
    assert_eq!(mode(Approval::Yolo, json!({"prompt": "p"})).unwrap(), "default");
    assert_eq!(
        mode(Approval::Yolo, json!({"prompt": "p", "approval": "yolo", "allow": ["shell(*)"]})).unwrap(),
        "yolo"
    );
    let refused = mode(Approval::Default, json!({"prompt": "p", "approval": "auto-edit"})).unwrap_err();
    assert_eq!(
        refused,
        "the worker refuses it: `approval` auto-edit is more than this worker allows, which is default"
    );
}

#[test]
fn outputs_are_of_places_that_came_with_the_job_and_stay_below_them() {
    let worker = worker(Approval::Yolo);
    let mut asked = envelope(json!({"prompt": "p"}));
    asked.outputs = vec!["report.md".to_owned()];
    let refused = admitted(&worker, &asked).unwrap_err();
    assert_eq!(refused, "the worker refuses it: outputs are for jobs with a place of their own");
    asked.place = envelope::Place::Copy { folder: "f".to_owned() };
    assert_eq!(admitted(&worker, &asked).unwrap().outputs.patterns(), ["report.md"]);
    for out in ["../x", "/etc/passwd", "a/../../x"] {
        asked.outputs = vec![out.to_owned()];
        assert!(admitted(&worker, &asked).unwrap_err().contains("is no path below"), "{out}");
    }
    drop(worker.dir);
}
