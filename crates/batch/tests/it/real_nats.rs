//! The queue on real servers: one, and three that keep everything together.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use alhena_batch::queue::{Address, Batch, Gathered, Label, Layout, Name, Queue, QueueError};
use alhena_testbed::nats::{NatsServer, cluster, urls};
use alhena_testbed::tls::TlsFront;
use alhena_testbed::{Deadline, HeldPort};

const SOON: Duration = Duration::from_millis(200);
const LONG: Duration = Duration::from_secs(60);

fn address(servers: &[NatsServer]) -> Address {
    Address::of(Some(&urls(servers)), |_| None).unwrap()
}

/// A server needs a moment to come up, a cluster one to choose its leader.
fn connect(servers: &[NatsServer], layout: &Layout) -> Queue {
    let begin = Instant::now();
    loop {
        match Queue::connect(&address(servers), layout.clone()) {
            Ok(queue) => return queue,
            Err(error) if begin.elapsed() > LONG => panic!("{error}"),
            Err(_) => std::thread::sleep(SOON),
        }
    }
}

/// A server of its own, and a batch.
fn alone(layout: Layout) -> ([NatsServer; 1], Queue, Name) {
    let servers = [NatsServer::alone().unwrap()];
    let queue = connect(&servers, &layout);
    (servers, queue, name("b"))
}

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn all_results(queue: &Queue, batch: &Name, how_many: usize) -> BTreeMap<(String, u32), Vec<String>> {
    let mut gathering = queue.gather(batch);
    let mut results: BTreeMap<(String, u32), Vec<String>> = BTreeMap::new();
    let mut add = |one: Gathered| {
        let said = String::from_utf8_lossy(&one.payload).into_owned();
        results.entry((one.job, one.attempt)).or_default().push(said);
        results.len()
    };
    let (begin, mut count) = (Instant::now(), 0);
    while count < how_many && begin.elapsed() < LONG * 3 {
        count = gathering.next(Duration::from_secs(2)).unwrap_or(None).map_or(count, &mut add);
    }
    while let Ok(Some(one)) = gathering.next(SOON) {
        add(one);
    }
    results
}

/// Puts messages under subjects, as any program can. Comes back when the server has them.
fn by_hand(server: &NatsServer, messages: &[(&str, &str)]) {
    let mut plain = std::net::TcpStream::connect(server.host()).unwrap();
    plain.set_read_timeout(Some(LONG)).unwrap();
    let mut said = "CONNECT {\"verbose\": false}\r\n".to_owned();
    for (subject, message) in messages {
        said.push_str(&format!("PUB {subject} {}\r\n{message}\r\n", message.len()));
    }
    said.push_str("PING\r\n");
    std::io::Write::write_all(&mut plain, said.as_bytes()).unwrap();
    let lines = std::io::BufRead::lines(std::io::BufReader::new(plain));
    assert!(lines.map(Result::unwrap).any(|line| line == "PONG"));
}

#[test]
fn a_job_goes_to_one_worker_and_its_result_to_everybody() {
    let (_servers, queue, batch) = alone(Layout::default());
    queue.announce(&batch, &Batch::new(2, "mine")).unwrap();
    assert!(queue.put(&batch, "a b.c", 1, &Label::any(), b"do it").unwrap());
    assert!(!queue.put(&batch, "a b.c", 1, &Label::any(), b"do it").unwrap());
    let large = "x".repeat(3 << 20);
    assert!(queue.put(&batch, "large", 1, &Label::any(), large.as_bytes()).unwrap());
    let mut worker = queue.worker(&[]).unwrap();
    let first = worker.next(LONG).unwrap().unwrap();
    assert_eq!(
        (first.batch(), first.job(), first.attempt(), first.payload()),
        ("b", "a b.c", 1, &b"do it"[..])
    );
    let second = worker.next(LONG).unwrap().unwrap();
    assert_eq!((second.job(), second.payload().len()), ("large", large.len()));
    assert!(worker.next(SOON).unwrap().is_none());
    assert!(first.finish(b"done").unwrap());
    assert!(second.finish(large.as_bytes()).unwrap());
    let results = all_results(&queue, &batch, 2);
    assert_eq!(results[&("a b.c".to_owned(), 1)], ["done"]);
    assert_eq!(results[&("large".to_owned(), 1)], [large]);
    let progress = queue.progress(&batch).unwrap().unwrap();
    assert_eq!((progress.jobs, progress.results, progress.open, progress.dead), (2, 2, 0, 0));
    queue.forget(&batch).unwrap();
    assert_eq!(queue.progress(&batch).unwrap(), None);
    assert!(all_results(&queue, &batch, 0).is_empty());
}

#[test]
fn a_worker_that_dies_loses_its_job_to_another_and_its_late_result_does_not_count() {
    let (_servers, queue, batch) = alone(Layout::default().lease(Duration::from_secs(1)));
    queue.put(&batch, "1", 1, &Label::any(), b"job").unwrap();
    // Nobody renews its lease, and nobody says a word.
    drop(queue.worker(&[]).unwrap().next(LONG).unwrap().unwrap());
    let late = queue.worker(&[]).unwrap().next(LONG).unwrap().unwrap();
    assert_eq!(late.times(), 2);
    assert!(late.finish(b"first").unwrap());
    let results = all_results(&queue, &batch, 1);
    assert_eq!(results[&("1".to_owned(), 1)], ["first"]);
    // Put in again by somebody who did not see the result: done twice, counted once.
    assert!(queue.put(&batch, "1", 1, &Label::any(), b"job").unwrap());
    let again = queue.worker(&[]).unwrap().next(LONG).unwrap().unwrap();
    assert!(!again.finish(b"second").unwrap());
    assert_eq!(all_results(&queue, &batch, 1)[&("1".to_owned(), 1)], ["first"]);
}

#[test]
fn a_lease_is_renewed_while_somebody_works() {
    let (_servers, queue, batch) = alone(Layout::default().lease(Duration::from_secs(6)));
    queue.put(&batch, "1", 1, &Label::any(), b"job").unwrap();
    let mut worker = queue.worker(&[]).unwrap();
    let held = worker.next(LONG).unwrap().unwrap();
    assert!(worker.next(Duration::from_secs(9)).unwrap().is_none());
    drop(held);
    let again = worker.next(LONG).unwrap().unwrap();
    assert_eq!(again.times(), 2);
    again.finish(b"").unwrap();
}

#[test]
fn a_job_that_ends_its_workers_is_put_aside_with_a_result() {
    let (_servers, queue, batch) = alone(Layout::default().deliveries(2));
    queue.announce(&batch, &Batch::new(1, "")).unwrap();
    queue.put(&batch, "bomb", 1, &Label::any(), b"job").unwrap();
    let mut worker = queue.worker(&[]).unwrap();
    for _ in 0..2 {
        let delivery = worker.next(LONG).unwrap().unwrap();
        assert!(!delivery.is_exhausted());
        delivery.give_back().unwrap();
    }
    let last = worker.next(LONG).unwrap().unwrap();
    assert!(last.is_exhausted());
    assert!(last.bury(b"it ended two workers").unwrap());
    let progress = queue.progress(&batch).unwrap().unwrap();
    assert_eq!((progress.results, progress.open, progress.dead), (1, 0, 1));
}

#[test]
fn labels_lead_jobs_to_those_who_have_them() {
    let (_servers, queue, batch) = alone(Layout::default());
    let gpu: Label = "gpu".parse().unwrap();
    queue.put(&batch, "g", 1, &gpu, b"").unwrap();
    queue.put(&batch, "a", 1, &Label::any(), b"").unwrap();
    let mut plain = queue.worker(&[]).unwrap();
    assert_eq!(plain.next(LONG).unwrap().unwrap().job(), "a");
    assert!(plain.next(SOON).unwrap().is_none());
    let mut special = queue.worker(&[gpu]).unwrap();
    assert_eq!(special.next(LONG).unwrap().unwrap().job(), "g");
}

#[test]
fn a_cancelled_batch_leaves_the_queue_and_its_workers_hear_of_it() {
    let (_servers, queue, batch) = alone(Layout::default());
    let other = name("other");
    queue.announce(&batch, &Batch::new(1, "")).unwrap();
    queue.put(&batch, "1", 1, &Label::any(), b"").unwrap();
    queue.put(&other, "1", 1, &Label::any(), b"").unwrap();
    let cancelled = queue.watch_cancelled();
    queue.cancel(&batch).unwrap();
    assert!(Deadline::after(LONG).wait_until(|| cancelled.has("b")));
    assert!(!cancelled.has("other"));
    let mut worker = queue.worker(&[]).unwrap();
    assert_eq!(worker.next(LONG).unwrap().unwrap().batch(), "other");
    assert!(worker.next(SOON).unwrap().is_none());
}

#[test]
fn a_batch_that_is_cancelled_after_the_server_lost_its_storage_is_heard_of() {
    let (mut servers, queue, _) = alone(Layout::default());
    let cancelled = queue.watch_cancelled();
    let is_heard = |batch: &Name| {
        let heard = || cancelled.has(&batch.to_string());
        assert!(Deadline::after(LONG).wait_until(heard), "{batch}");
    };
    // The numbers of the first bucket are higher than any of the second.
    let (before, after) = (name("before"), name("after"));
    (0..20).for_each(|jobs| queue.announce(&before, &Batch::new(jobs, "")).unwrap());
    queue.cancel(&before).unwrap();
    is_heard(&before);
    servers[0].lose_storage().unwrap();
    // Whoever only listens makes nothing again; somebody else does.
    let other = connect(&servers, &Layout::default());
    other.announce(&after, &Batch::new(1, "")).unwrap();
    other.cancel(&after).unwrap();
    is_heard(&after);
    other.announce(&before, &Batch::new(1, "")).unwrap();
    assert!(Deadline::after(LONG).wait_until(|| !cancelled.has("before")));
}

#[test]
fn a_batch_that_is_announced_again_stays_cancelled_or_forgotten() {
    let (_servers, queue, batch) = alone(Layout::default());
    let open = Batch::new(1, "mine");
    assert!(!queue.is_open(&batch).unwrap());
    assert!(queue.announce_again(&batch, &open).unwrap());
    assert!(queue.is_open(&batch).unwrap());
    assert!(!queue.announce_again(&batch, &Batch::new(2, "")).unwrap());
    assert_eq!(queue.batch(&batch).unwrap(), Some(open.clone()));
    queue.cancel(&batch).unwrap();
    assert!(!queue.is_open(&batch).unwrap());
    assert!(!queue.announce_again(&batch, &open).unwrap());
    assert_eq!(queue.is_cancelled(&batch), Some(true));
    queue.forget(&batch).unwrap();
    assert!(!queue.is_open(&batch).unwrap());
    assert!(!queue.announce_again(&batch, &open).unwrap());
    assert_eq!(queue.batch(&batch).unwrap(), None);
    // Whoever submits it opens it again.
    queue.announce(&batch, &open).unwrap();
    assert!(queue.is_open(&batch).unwrap());
}

#[test]
fn a_limit_that_one_was_told_holds_for_all() {
    let servers = [NatsServer::alone().unwrap()];
    let (one, two) = (connect(&servers, &Layout::default()), connect(&servers, &Layout::default()));
    assert_eq!(two.held("gemini-2.5-pro").unwrap(), None);
    one.hold("gemini-2.5-pro", LONG).unwrap();
    two.hold("gemini-2.5-pro", Duration::from_secs(1)).unwrap();
    assert!(two.held("gemini-2.5-pro").unwrap().unwrap() > LONG / 2);
    assert_eq!(two.held("gemini-2.5-flash").unwrap(), None);
}

#[test]
fn a_limit_that_a_wrong_clock_announced_is_bounded_and_replaced_by_the_next() {
    let (servers, queue, _) = alone(Layout::default());
    let (longest, seconds) = (Duration::from_secs(300), Duration::from_secs);
    for until in ["99999999999999", "18446744073709551615"] {
        by_hand(&servers[0], &[("$KV.alhena-limits.model.m", until)]);
        let held = queue.held("m").unwrap().unwrap();
        assert!(held <= longest && held > longest / 2, "{held:?}");
        queue.hold("m", seconds(40)).unwrap();
        let held = queue.held("m").unwrap().unwrap();
        assert!(held <= seconds(40), "{held:?}");
    }
    // Neither is a time believed that the API could not have asked for.
    queue.hold("n", seconds(86_400)).unwrap();
    let held = queue.held("n").unwrap().unwrap();
    assert!(held <= longest && held > longest / 2, "{held:?}");
}

#[test]
fn a_worker_takes_jobs_again_after_the_server_lost_its_storage() {
    let (mut servers, queue, batch) = alone(Layout::default().lease(Duration::from_secs(5)));
    let gpu: Label = "gpu".parse().unwrap();
    let mut worker = queue.worker(std::slice::from_ref(&gpu)).unwrap();
    assert!(queue.put(&batch, "1", 1, &Label::any(), b"job").unwrap());
    let begun = worker.next(LONG).unwrap().unwrap();
    servers[0].lose_storage().unwrap();
    let begin = Instant::now();
    let told = loop {
        assert!(begin.elapsed() < LONG, "nobody noticed");
        match worker.next(SOON) {
            Err(QueueError::Emptied) => break QueueError::Emptied,
            Ok(Some(_)) => panic!("there are no jobs"),
            Ok(None) | Err(_) => std::thread::sleep(SOON),
        }
    };
    assert!(told.to_string().contains("lost what it had stored"), "{told}");
    // A job from before the loss can still be finished, even with a result large enough for the object store, and the worker takes
    // jobs of every label again.
    assert!(begun.finish("x".repeat(1 << 20).as_bytes()).unwrap());
    for (job, label) in [("2", Label::any()), ("3", gpu)] {
        assert!(queue.put(&batch, job, 1, &label, b"job").unwrap());
        let next = worker.next(LONG).unwrap().unwrap();
        assert_eq!(next.job(), job);
        assert!(next.finish(b"done").unwrap());
    }
    assert_eq!(all_results(&queue, &batch, 3).len(), 3);
}

#[test]
fn whoever_waits_for_results_notices_that_the_server_lost_its_storage_and_which_jobs_with_it() {
    let (mut servers, queue, batch) = alone(Layout::default());
    let put = |job: &str| queue.put(&batch, job, 1, &Label::any(), b"job").unwrap();
    let keys = |jobs: &[&str]| jobs.iter().map(|job| ((*job).to_owned(), 1)).collect::<Vec<(String, u32)>>();
    let mut worker = queue.worker(&[]).unwrap();
    let mut gathering = queue.gather(&batch);
    for job in ["done", "also done"] {
        put(job);
        worker.next(LONG).unwrap().unwrap().finish(b"done").unwrap();
        assert_eq!(gathering.next(LONG).unwrap().unwrap().job, job);
    }
    put("waits");
    let all = keys(&["done", "also done", "waits", "never put"]);
    assert_eq!(queue.vanished(&batch, all.clone()).unwrap(), keys(&["never put"]));
    assert!(!gathering.begins_anew().unwrap());
    servers[0].lose_storage().unwrap();
    // Somebody else is faster: streams that are there again are new all the same.
    let other = connect(&servers, &Layout::default());
    let noticed = Deadline::after(LONG).wait_until(|| gathering.begins_anew().unwrap_or(false));
    assert!(noticed, "nobody noticed");
    // Until the submitter has put everything back: what fails on the way is tried again.
    assert!(gathering.begins_anew().unwrap());
    gathering.restored();
    assert!(!gathering.begins_anew().unwrap());
    assert_eq!(queue.vanished(&batch, all.clone()).unwrap(), all);
    assert!(put("waits"));
    assert_eq!(queue.vanished(&batch, keys(&["waits"])).unwrap(), []);
    let mut worker = other.worker(&[]).unwrap();
    worker.next(LONG).unwrap().unwrap().finish(b"done").unwrap();
    // Its number is one that was seen before.
    assert_eq!(gathering.next(LONG).unwrap().unwrap().job, "waits");
}

#[test]
fn what_is_no_job_of_ours_is_taken_out_and_stops_nobody() {
    let (servers, queue, batch) = alone(Layout::default());
    queue.put(&batch, "1", 1, &Label::any(), b"job").unwrap();
    by_hand(&servers[0], &[("alhena.jobs.any.b.x.1", "nonsense!")]);
    queue.put(&batch, "2", 1, &Label::any(), b"job").unwrap();
    let mut worker = queue.worker(&[]).unwrap();
    let mut jobs = Vec::new();
    let begin = Instant::now();
    while jobs.len() < 2 && begin.elapsed() < LONG {
        if let Some(delivery) = worker.next(SOON).unwrap() {
            jobs.push(delivery.job().to_owned());
            delivery.finish(b"").unwrap();
        }
    }
    assert_eq!(jobs, ["1", "2"]);
}

/// A message, as it is with this head.
fn headed(batch: &str, job: &str, attempt: u32) -> String {
    format!("{}\njob", serde_json::json!({"batch": batch, "job": job, "attempt": attempt}))
}

#[test]
fn a_job_whose_head_does_not_fit_where_it_was_put_is_taken_out_and_told() {
    let (servers, queue, batch) = alone(Layout::default());
    queue.announce(&batch, &Batch::new(1, "")).unwrap();
    let long = "x".repeat(5000);
    let heads = [("a b", "1", 1), ("", "1", 1), ("*", "1", 1), (&long, "1", 1), ("other", "1", 1)];
    let heads = heads.into_iter().chain([("b", "2", 1), ("b", "1", 2), ("a.b", "1", 1)]);
    let odd: Vec<String> = heads.map(|(batch, job, attempt)| headed(batch, job, attempt)).collect();
    let mut messages: Vec<(&str, &str)> =
        odd.iter().map(|message| ("alhena.jobs.any.b.1.1", &**message)).collect();
    let plain = headed("b", "1", 1);
    messages.extend([("alhena.jobs.any.b", &*plain), ("alhena.jobs.any.a.b.1.1", &odd[7])]);
    by_hand(&servers[0], &messages);
    queue.put(&batch, "good", 1, &Label::any(), b"job").unwrap();
    let (mut worker, mut refused) = (queue.worker(&[]).unwrap(), Vec::new());
    let begin = Instant::now();
    let delivery = loop {
        assert!(begin.elapsed() < LONG);
        let taken = worker.next(LONG).unwrap();
        refused.extend(worker.refused());
        if let Some(delivery) = taken {
            break delivery;
        }
    };
    assert_eq!((delivery.job(), delivery.times()), ("good", 1));
    delivery.finish(b"").unwrap();
    assert_eq!(refused.len(), messages.len(), "{refused:?}");
    assert_eq!(refused[0].subject, "alhena.jobs.any.b.1.1");
    assert!(refused[0].reason.contains("its head does not fit its subject"), "{refused:?}");
    assert!(worker.next(SOON).unwrap().is_none());
    assert_eq!(queue.progress(&batch).unwrap().unwrap().open, 0);
}

#[test]
fn a_result_whose_head_does_not_fit_where_it_was_put_is_passed_over() {
    let (servers, queue, batch) = alone(Layout::default());
    queue.put(&batch, "1", 1, &Label::any(), b"job").unwrap();
    let (mine, later, other) = (headed("b", "1", 1), headed("b", "1", 2), headed("other", "x", 1));
    let messages = [
        ("alhena.results.b.x.1", &*mine),
        ("alhena.results.b.x.2", &later),
        ("alhena.results.b.y.1", &other),
    ];
    by_hand(&servers[0], &messages);
    assert!(queue.worker(&[]).unwrap().next(LONG).unwrap().unwrap().finish(b"done").unwrap());
    // Each is told, and how many more there are.
    let mut gathering = queue.gather(&batch);
    for left in [3, 2, 1] {
        assert_eq!(gathering.next(LONG).unwrap(), None);
        let refused = gathering.refused();
        assert!(refused[0].subject.starts_with("alhena.results.b."), "{refused:?}");
        assert_eq!((gathering.left(), refused.len()), (Some(left), 1));
    }
    let good = gathering.next(LONG).unwrap().unwrap();
    assert_eq!((&*good.job, good.attempt, &*good.payload), ("1", 1, &b"done"[..]));
    assert_eq!((gathering.left(), gathering.refused().len()), (Some(0), 0));
}

#[test]
fn what_refers_to_a_file_that_is_gone_is_told_as_such_and_holds_up_nobody() {
    let (servers, queue, batch) = alone(Layout::default());
    let head = serde_json::json!({"batch": "b", "job": "1", "attempt": 1, "object": "job.b.gone"});
    let message = format!("{head}\n");
    by_hand(&servers[0], &[("alhena.jobs.any.b.1.1", &message), ("alhena.results.b.1.1", &message)]);
    queue.put(&batch, "2", 1, &Label::any(), b"job").unwrap();
    let mut worker = queue.worker(&[]).unwrap();
    let lost = worker.next(LONG).unwrap().unwrap();
    assert_eq!((lost.job(), lost.payload()), ("1", &b""[..]));
    assert_eq!(lost.lost(), Some("the file \"job.b.gone\" of the queue is gone"));
    assert!(!lost.finish(b"it is gone").unwrap());
    let there = worker.next(LONG).unwrap().unwrap();
    assert_eq!((there.job(), there.lost()), ("2", None));
    assert!(there.finish(b"done").unwrap());
    let results = all_results(&queue, &batch, 2);
    assert_eq!(results[&("1".to_owned(), 1)], [""]);
    assert_eq!(results[&("2".to_owned(), 1)], ["done"]);
}

/// What stands in the store of files anybody may have written who can write there.
#[test]
fn a_file_that_is_torn_or_odd_is_told_as_such_and_holds_up_nobody() {
    let (servers, queue, batch) = alone(Layout::default());
    let torn = r#"{"name":"torn","bucket":"alhena-files","nuid":"n1","size":9,"chunks":1}"#;
    let link = r#"{"name":"link","bucket":"alhena-files","options":{"link":{"name":"link","bucket":"alhena-files"}}}"#;
    let bucket = r#"{"name":"bucket","bucket":"other","nuid":"n2","size":9,"chunks":1}"#;
    let nuid = r#"{"name":"nuid","bucket":"alhena-files","nuid":">","size":9,"chunks":1}"#;
    // The names as the store has them, in base64.
    let files =
        [("dG9ybg==", torn), ("bGluaw==", link), ("YnVja2V0", bucket), ("bnVpZA==", nuid), ("b2Rk", "{")];
    for (file, about) in files {
        by_hand(&servers[0], &[(&format!("$O.alhena-files.M.{file}"), about)]);
    }
    let whys = [
        "the file \"torn\" of the queue is gone",
        "kept as nobody",
        "kept as nobody",
        "kept as nobody",
        "cannot be read",
    ];
    for (job, file) in ["torn", "link", "bucket", "nuid", "odd"].iter().enumerate() {
        let head = serde_json::json!({"batch": "b", "job": job.to_string(), "attempt": 1, "object": file});
        by_hand(&servers[0], &[(&format!("alhena.results.b.{job}.1"), &format!("{head}\n"))]);
    }
    let mut gathering = queue.gather(&batch);
    for why in whys {
        let gathered = gathering.next(LONG).unwrap().unwrap();
        assert!(gathered.lost.as_ref().is_some_and(|lost| lost.contains(why)), "{why}: {gathered:?}");
    }
}

#[test]
fn nobody_there_no_jetstream_and_wrong_files_are_told_apart() {
    let free = HeldPort::new().unwrap();
    let nobody = Address::of(Some(&format!("nats://me:secret@127.0.0.1:{}", free.number)), |_| None).unwrap();
    let error = Queue::connect(&nobody, Layout::default()).unwrap_err();
    assert!(matches!(error, QueueError::Connect { .. }) && !error.to_string().contains("secret"), "{error}");
    let missing = |name: &str| (name == "NATS_CREDS").then(|| "/nowhere/creds".to_owned());
    let error = Queue::connect(&Address::of(Some("nats://127.0.0.1"), missing).unwrap(), Layout::default());
    assert!(error.unwrap_err().to_string().contains("/nowhere/creds"));
    let mut plain = NatsServer::alone().unwrap();
    plain.arguments.retain(|word| word != "-js");
    plain.again().unwrap();
    let begin = Instant::now();
    let error = loop {
        let error = Queue::connect(&address(std::slice::from_ref(&plain)), Layout::default()).unwrap_err();
        if error.to_string().contains("JetStream") || begin.elapsed() > LONG {
            break error;
        }
        std::thread::sleep(SOON);
    };
    assert!(error.to_string().contains("it has no JetStream"), "{error}");
}

#[test]
fn a_cluster_that_loses_a_server_loses_no_job() {
    let mut servers = cluster().unwrap();
    let layout = Layout::default().replicas(3).lease(Duration::from_secs(3));
    let queue = connect(&servers, &layout);
    let batch = name("b");
    let jobs = 60;
    let over = Arc::new(AtomicBool::new(false));
    let worker = |queue: Queue| {
        let over = over.clone();
        std::thread::spawn(move || {
            let mut worker = queue.worker(&[]).unwrap();
            while !over.load(Ordering::Acquire) {
                match worker.next(Duration::from_secs(1)) {
                    Ok(Some(delivery)) => {
                        let answer =
                            format!("{} of {}", delivery.job(), String::from_utf8_lossy(delivery.payload()));
                        let _lost = delivery.finish(answer.as_bytes());
                    }
                    Ok(None) => {}
                    Err(_) => std::thread::sleep(SOON),
                }
            }
        })
    };
    let workers = [worker(queue.clone()), worker(connect(&servers, &layout))];
    for job in 0..jobs {
        if job == jobs / 3 {
            servers[1].kill();
        }
        if job == 2 * jobs / 3 {
            servers[1].again().unwrap();
        }
        queue.put(&batch, &job.to_string(), 1, &Label::any(), format!("payload {job}").as_bytes()).unwrap();
    }
    let results = all_results(&queue, &batch, jobs);
    over.store(true, Ordering::Release);
    assert_eq!(results.len(), jobs);
    for ((job, attempt), said) in results {
        assert_eq!((attempt, said), (1, vec![format!("{job} of payload {job}")]));
    }
    for worker in workers {
        worker.join().unwrap();
    }
}

#[test]
fn a_job_that_is_withdrawn_is_given_to_nobody_and_a_result_that_is_forgotten_can_come_again() {
    let (_servers, queue, batch) = alone(Layout::default());
    let gpu: Label = "gpu".parse().unwrap();
    queue.put(&batch, "a b", 1, &gpu, b"job").unwrap();
    queue.put(&batch, "other", 1, &gpu, b"job").unwrap();
    queue.withdraw(&batch, "a b", 1).unwrap();
    let mut worker = queue.worker(&[gpu]).unwrap();
    let delivery = worker.next(LONG).unwrap().unwrap();
    assert_eq!(delivery.job(), "other");
    assert!(delivery.finish(b"out of quota").unwrap());
    assert!(worker.next(SOON).unwrap().is_none());
    queue.forget_result(&batch, "other", 1).unwrap();
    queue.put(&batch, "other", 1, &Label::any(), b"job").unwrap();
    assert!(worker.next(LONG).unwrap().unwrap().finish(b"done").unwrap());
    assert_eq!(all_results(&queue, &batch, 1)[&("other".to_owned(), 1)], ["done"]);
}

#[test]
fn a_job_that_nobody_wants_leaves_no_result_and_whoever_listens_hears_of_beginnings() {
    let (_servers, queue, batch) = alone(Layout::default());
    let (tell, told) = std::sync::mpsc::channel();
    queue.watch_begun(&batch, move |begun| drop(tell.send(begun))).unwrap();
    queue.put(&batch, "1", 1, &Label::any(), b"job").unwrap();
    let mut worker = queue.worker(&[]).unwrap();
    let delivery = worker.next(LONG).unwrap().unwrap();
    delivery.tell_begun("me");
    let begun = told.recv_timeout(LONG).unwrap();
    assert_eq!((begun.job.as_str(), begun.attempt, begun.worker.as_str()), ("1", 1, "me"));
    delivery.discard().unwrap();
    assert!(worker.next(SOON).unwrap().is_none());
    assert!(all_results(&queue, &batch, 0).is_empty());
}

#[test]
fn who_works_on_a_job_says_so_with_every_renewal_and_when_it_is_given_back() {
    let (_servers, queue, batch) = alone(Layout::default().lease(Duration::from_secs(1)));
    let (tell, told) = std::sync::mpsc::channel();
    queue.watch_begun(&batch, move |begun| drop(tell.send(begun))).unwrap();
    queue.put(&batch, "1", 1, &Label::any(), b"job").unwrap();
    let mut worker = queue.worker(&[]).unwrap();
    let delivery = worker.next(LONG).unwrap().unwrap();
    delivery.tell_begun("me");
    for _ in 0..3 {
        let begun = told.recv_timeout(LONG).unwrap();
        assert_eq!((begun.worker.as_str(), begun.lease_ms, begun.returned), ("me", Some(1000), false));
    }
    delivery.give_back().unwrap();
    let back = std::iter::from_fn(|| told.recv_timeout(LONG).ok()).find(|told| told.returned).unwrap();
    assert_eq!((back.job.as_str(), back.attempt, back.worker.as_str()), ("1", 1, "me"));
    // Of what nobody began nothing is told, and nothing any more of what was given back.
    let again = worker.next(LONG).unwrap().unwrap();
    assert!(told.recv_timeout(Duration::from_secs(1)).is_err());
    again.give_back().unwrap();
    assert!(told.recv_timeout(SOON).is_err());
}

#[test]
fn what_was_gathered_says_how_much_more_there_is() {
    let (_servers, queue, batch) = alone(Layout::default());
    let mut worker = queue.worker(&[]).unwrap();
    for job in ["1", "2", "3"] {
        queue.put(&batch, job, 1, &Label::any(), b"job").unwrap();
        worker.next(LONG).unwrap().unwrap().finish(b"done").unwrap();
    }
    let mut gathering = queue.gather(&batch);
    let left: Vec<u64> = (0..3).map(|_| gathering.next(LONG).unwrap().unwrap().left).collect();
    assert_eq!(left, [2, 1, 0]);
}

#[test]
fn files_of_a_batch_are_had_by_name_and_forgotten_with_it() {
    let (_servers, queue, batch) = alone(Layout::default());
    let large = vec![7; 3 << 20];
    let file = queue.keep_file(&batch, &large).unwrap();
    assert_eq!(queue.keep_file(&batch, &large).unwrap(), file);
    assert_eq!(queue.file(&file).unwrap(), large);
    queue.forget(&batch).unwrap();
    assert!(queue.file(&file).is_err());
    // The same once more, for a batch of the same name.
    assert_eq!(queue.keep_file(&batch, &large).unwrap(), file);
    assert_eq!(queue.file(&file).unwrap(), large);
}

#[test]
fn a_server_that_asks_for_a_password_or_a_token_gets_it_and_nobody_else_sees_it() {
    let server = NatsServer::with(&["--user", "me", "--pass", "hunter2"]).unwrap();
    let let_in = |url: &str, name: &str, value: &str| {
        let variable = |asked: &str| (asked == name).then(|| value.to_owned());
        Queue::connect(&Address::of(Some(url), variable).unwrap(), Layout::default()).map(drop)
    };
    let inside = server.url().replace("nats://", "nats://me:hunter2@");
    let_in(&inside, "", "").unwrap();
    let both = |asked: &str| match asked {
        "NATS_USER" => Some("me".to_owned()),
        "NATS_PASSWORD" => Some("hunter2".to_owned()),
        _ => None,
    };
    Queue::connect(&Address::of(Some(&server.url()), both).unwrap(), Layout::default()).unwrap();
    let wrong = let_in(&server.url().replace("nats://", "nats://me:wrong-one@"), "", "").unwrap_err();
    assert!(!wrong.to_string().contains("wrong-one"), "{wrong}");
    assert!(let_in(&server.url(), "", "").is_err());
    let server = NatsServer::with(&["--auth", "s3cret"]).unwrap();
    let_in(&server.url(), "NATS_TOKEN", "s3cret").unwrap();
    assert!(let_in(&server.url(), "NATS_TOKEN", "other").is_err());
}

#[test]
fn a_server_with_tls_is_spoken_to_when_its_authority_is_trusted_and_not_otherwise() {
    let server = NatsServer::with_tls().unwrap();
    let authority = TlsFront::authority().to_string_lossy().into_owned();
    let trusting = |name: &str| (name == "NATS_CA").then(|| authority.clone());
    let queue =
        Queue::connect(&Address::of(Some(&server.url()), trusting).unwrap(), Layout::default()).unwrap();
    queue.put(&name("b"), "1", 1, &Label::any(), b"job").unwrap();
    assert_eq!(queue.worker(&[]).unwrap().next(LONG).unwrap().unwrap().payload(), b"job");
    let strange = Queue::connect(&Address::of(Some(&server.url()), |_| None).unwrap(), Layout::default());
    assert!(matches!(strange, Err(QueueError::Connect { .. })));
    let plain = server.url().replace("tls://", "nats://");
    assert!(Queue::connect(&Address::of(Some(&plain), |_| None).unwrap(), Layout::default()).is_err());
}

/// `docs/scale.md` computes with these figures.
#[test]
fn a_job_costs_few_messages_however_many_there_are() {
    let server = NatsServer::monitored().unwrap();
    let queue = connect(std::slice::from_ref(&server), &Layout::default());
    let batch = name("b");
    queue.announce(&batch, &Batch::new(0, "")).unwrap();
    queue.watch_begun(&batch, |_| ()).unwrap();
    let (mut worker, mut gathering) = (queue.worker(&[]).unwrap(), queue.gather(&batch));
    let payload = [b'x'; 500];
    let mut one = |job: usize| {
        queue.put(&batch, &job.to_string(), 1, &Label::any(), &payload).unwrap();
        let delivery = worker.next(LONG).unwrap().unwrap();
        delivery.tell_begun("worker");
        assert_eq!(queue.held("shared default").unwrap(), None);
        delivery.finish(&[b'y'; 1000]).unwrap();
        gathering.next(LONG).unwrap().unwrap();
    };
    one(0);
    let before = server.traffic().unwrap();
    let (jobs, begin) = (200, Instant::now());
    (1..=jobs).for_each(&mut one);
    let time = begin.elapsed();
    let (messages, bytes) = server.traffic().unwrap().since(&before);
    let each = |all: u64| all as f64 / jobs as f64;
    println!("{:.1} messages, {:.0} bytes, {:.2?} a job", each(messages), each(bytes), time / jobs as u32);
    assert!(each(messages) < 24.0, "{}", each(messages));
    assert!(each(bytes) < 16_000.0, "{}", each(bytes));
}

/// And with these.
#[test]
fn a_renewal_costs_three_messages() {
    let server = NatsServer::monitored().unwrap();
    // A renewal each two seconds: none of them is in what was before.
    let queue = connect(std::slice::from_ref(&server), &Layout::default().lease(Duration::from_secs(6)));
    let batch = name("b");
    let (tell, told) = std::sync::mpsc::channel();
    queue.watch_begun(&batch, move |begun| drop(tell.send(begun))).unwrap();
    queue.put(&batch, "review-17@00112233445566778899aabbccddeeff", 1, &Label::any(), b"job").unwrap();
    let delivery = queue.worker(&[]).unwrap().next(LONG).unwrap().unwrap();
    delivery.tell_begun("build-machine-7-31415");
    told.recv_timeout(LONG).unwrap();
    told.try_iter().for_each(drop);
    let (before, times) = (server.traffic().unwrap(), 3);
    (0..times).for_each(|_| drop(told.recv_timeout(LONG).unwrap()));
    let (messages, bytes) = server.traffic().unwrap().since(&before);
    println!("{messages} messages, {bytes} bytes for {times} renewals");
    // On a machine that is busy one more may have begun.
    assert!((3 * times..=3 * times + 3).contains(&messages), "{messages}");
    delivery.discard().unwrap();
}
