use std::io::Write;

use serde_json::{Value, json};

use super::*;
use crate::testing::NoLauncher;

fn setting(format: Format, template: Option<&str>) -> Setting {
    Setting {
        format,
        defaults: Fields::new(),
        template: template.map(|text| Template::parse(text).unwrap()),
        launcher: Arc::new(NoLauncher),
        travels: false,
    }
}

fn file(bytes: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    file
}

fn read(
    format: Format,
    template: Option<&str>,
    bytes: &[u8],
) -> Result<Vec<(String, u64, Value)>, Vec<String>> {
    let file = file(bytes);
    match Supply::of_file(file.path(), setting(format, template)) {
        Ok(supply) => {
            let jobs = (0..supply.entries().len()).map(|number| supply.job(number).unwrap());
            Ok(jobs.map(|job| (job.id.clone(), job.line, said(&job))).collect())
        }
        Err(Unusable::Wrong(complaints)) => {
            let told = |Complaint { line, fault }| format!("{line}: {}", fault);
            Err(complaints.into_iter().map(told).collect())
        }
        Err(Unusable::Io(error)) => panic!("{error}"),
    }
}

fn said(job: &Job) -> Value {
    let mut fields = job.options.to_fields().unwrap();
    let (setting, prompt) = job.prompt.to_field();
    fields.insert(setting.name().to_owned(), prompt);
    fields.into()
}

const COMMAS: Format = Format::Table(b',');

#[test]
fn jobs_are_lines_of_json_with_blank_ones_between() {
    let text = b"\xef\xbb\xbf{\"prompt\": \"a\"}\r\n\n  \n{\"prompt\": \"b\", \"id\": \"x\"}\n{\"prompt\":\"x\\u2028\"}";
    let jobs = read(Format::Lines, None, text).unwrap();
    let expected = [
        ("1".to_owned(), 1, json!({"prompt": "a"})),
        ("x".to_owned(), 4, json!({"prompt": "b"})),
        ("5".to_owned(), 5, json!({"prompt": "x\u{2028}"})),
    ];
    assert_eq!(jobs, expected);
}

#[test]
fn everything_that_is_wrong_is_told_with_its_line() {
    let text = "{\"prompt\": \"a\"}\n{\"prompt\": \n[]\n{\"promt\": 1}\n{\"id\": \"1\", \"prompt\": \"b\"}\n\
                {\"prompt\": \"a\", \"prompt\": \"b\"}\nplain\n{\"prompt\": \"a\"} x\n\
                {\"id\": \"z\", \"prompt\": []}\n{\"id\": \"z\", \"prompt\": \"a\"}\n{\"id\": null, \"prompt\": \"a\"}\n{\"id\": 11, \"prompt\": \"a\"}\n";
    assert_eq!(
        read(Format::Lines, None, text.as_bytes()).unwrap_err(),
        [
            "2: not a job: EOF while parsing a value at column 10",
            "3: not a job: invalid type: sequence, expected an object",
            "4: there is no option `promt`",
            "5: id \"1\" is that of line 1, too",
            "6: not a job: prompt is there twice at column 24",
            "7: not a job: expected value at column 1",
            "8: not a job: trailing characters at column 17",
            "9: `prompt`: a text or a number is needed",
            "10: id \"z\" is that of line 9, too",
            "12: id \"11\" is that of line 11, too",
        ]
    );
    assert_eq!(
        read(Format::Lines, None, b"{\"prompt\": \"\xff\"}").unwrap_err(),
        ["1: it is not UTF-8 text"]
    );
}

#[test]
fn a_table_has_names_in_its_first_row_and_quotes_where_they_are_needed() {
    let text = "\u{feff}\"id\",file,dir,trust\r\n\
                1,\"a, \"\"b\"\".rs\",/x,true\r\n\
                2,\"two\nlines\",,\r\n\r\n\
                3,c,/y,\n";
    let jobs = read(COMMAS, Some("Review {file}"), text.as_bytes()).unwrap();
    let expected = [
        ("1".to_owned(), 2, json!({"dir": "/x", "trust": true, "prompt": "Review a, \"b\".rs"})),
        ("2".to_owned(), 3, json!({"prompt": "Review two\nlines"})),
        ("3".to_owned(), 6, json!({"dir": "/y", "prompt": "Review c"})),
    ];
    assert_eq!(jobs, expected);
    let tabs = read(Format::Table(b'\t'), None, b"prompt\tdir\na,b\t/x").unwrap();
    assert_eq!(tabs, [("2".to_owned(), 2, json!({"prompt": "a,b", "dir": "/x"}))]);
}

#[test]
fn what_is_wrong_with_a_table_is_told() {
    let wrong = |text: &str| read(COMMAS, None, text.as_bytes()).unwrap_err();
    assert_eq!(
        wrong("prompt,file,,prompt\na,b,c,d\n"),
        [
            "1: the column file is neither an option nor in the template",
            "1: column 3 has no name",
            "1: the column prompt is there twice"
        ]
    );
    assert_eq!(
        wrong("id,prompt\n1,a\n2,b,c\n3\n1,d\n\"4,e\n5,f\n"),
        [
            "3: there are 3 fields, and the first row has 2",
            "4: there are 1 fields, and the first row has 2",
            "5: id \"1\" is that of line 2, too",
            "6: a quote is not closed",
        ]
    );
}

#[test]
fn a_job_that_is_changed_while_the_batch_runs_is_not_run() {
    let file = file(b"{\"prompt\": \"one\"}\n{\"prompt\": \"two\"}\n");
    let supply = Supply::of_file(file.path(), setting(Format::Lines, None)).unwrap();
    std::fs::write(file.path(), "{\"prompt\": \"ONE\"}\n").unwrap();
    let messages = [0, 1].map(|number| supply.job(number).unwrap_err().to_string());
    assert_eq!(messages[0], "the job was changed while the batch ran");
    assert!(messages[1].starts_with("the job cannot be read any more"), "{messages:?}");
}

#[test]
fn a_stream_gives_jobs_while_it_is_still_being_written() {
    let (mut writer, reader) = alhena_sys::sockets::Stream::pair().unwrap();
    let (woken, wakes) = std::sync::mpsc::channel();
    let wake = move || woken.send(()).unwrap_or_default();
    let mut supply = Supply::of_stream(reader, setting(Format::Lines, None), wake).unwrap();
    let next = |supply: &mut Supply| {
        wakes.recv().unwrap();
        supply.take_next().unwrap()
    };
    writer.write_all(b"{\"prompt\": \"a\"}\n{\"prom").unwrap();
    assert!(matches!(next(&mut supply), Came::Job(job, _) if job.id == "1"));
    assert!(!supply.is_complete());
    writer.write_all(b"pt\": \"b\", \"id\": \"1\"}\n{}\n{\"prompt\": \"c\"}").unwrap();
    drop(writer);
    let Came::Refused { id: None, complaints, .. } = next(&mut supply) else { panic!() };
    assert_eq!(
        (complaints[0].line, complaints[0].fault.to_string().as_str()),
        (2, "id \"1\" is that of line 1, too")
    );
    let Came::Refused { id: Some(id), .. } = next(&mut supply) else { panic!() };
    assert_eq!(id, "3");
    assert!(matches!(next(&mut supply), Came::Job(job, _) if job.id == "4"));
    assert!(matches!(next(&mut supply), Came::End));
    assert!(supply.is_complete() && supply.take_next().is_none());
    assert_eq!(supply.job(0).unwrap().prompt, "a".into());
    supply.forget(0);
    assert!(supply.job(0).is_err());
}
