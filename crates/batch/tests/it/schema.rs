//! The committed schema of results is what the Rust types say, and what is written is what it says. To write it anew:
//! `UPDATE_SCHEMAS=1 cargo test -p alhena-batch --test it schema`.

#[path = "../../../hosts/tests/shapes/validator.rs"]
mod validator;

use std::path::Path;
use std::sync::Arc;

use alhena_batch::outputs::{Content, OutputFile};
use alhena_batch::result::{Earlier, JobResult};
use alhena_hosts::schema::shape;
use alhena_model::{Failure, FailureKind, Outcome, Status};
use serde_json::{Value, json};
use validator::Validator;

fn schema() -> Value {
    shape::<JobResult>("result").schema
}

#[test]
fn the_committed_schema_is_up_to_date() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas/result.json");
    let expected = format!("{:#}\n", schema());
    if std::fs::read_to_string(&file).ok().as_deref() != Some(expected.as_str()) {
        assert!(std::env::var_os("UPDATE_SCHEMAS").is_some(), "stale; run this test with UPDATE_SCHEMAS=1");
        std::fs::write(&file, expected).unwrap();
    }
}

#[test]
fn what_is_written_is_what_the_schema_says() {
    let schema = schema();
    let failed = Outcome::not_begun(Failure::new(FailureKind::Input, "no"));
    let mut result = JobResult::new("a", "00", Arc::new(failed.clone()));
    let check = |result: &JobResult| {
        let written: Value = serde_json::from_str(&result.line().unwrap()).unwrap();
        assert_eq!(Validator::new(&schema).check(&written), Ok(()), "{written}");
        written
    };
    check(&result);
    result.earlier.push(Earlier::of(&failed));
    let mut outcome = Outcome::default();
    outcome.status = Status::Success;
    (result.outcome, result.attempt) = (Arc::new(outcome), 2);
    (result.patch, result.commit) = (Some("diff".into()), Some("c0ffee".into()));
    result.worker = Some("build-7".into());
    for content in [Content::Text("t".into()), Content::Base64("/w==".into())] {
        result.outputs.push(OutputFile { path: "a/b".into(), content });
    }
    let mut written = check(&result);
    written["attempt"] = json!("two");
    assert!(Validator::new(&schema).check(&written).is_err());
}
