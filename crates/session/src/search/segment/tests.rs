use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

type Model = BTreeMap<Vec<u8>, Vec<Posting>>;

fn write(words: &Model, messages: u32) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut writer = Writer::new(file.as_file()).unwrap();
    for (word, postings) in words {
        writer.word(word, postings.iter().copied()).unwrap();
    }
    let place =
        |n: u32| Place { file: n / 3, span: Span { offset: u64::from(n) * 100, length: u64::from(n) + 1 } };
    writer.finish((0..messages).map(|n| (n * 7, place(n)))).unwrap();
    file
}

fn model() -> impl Strategy<Value = (Model, u32)> {
    let postings = prop::collection::btree_map(0_u32..50, 1_u32..200, 1..20);
    prop::collection::btree_map("[a-c]{1,4}", postings, 0..200).prop_map(|words| {
        let words = words.into_iter().map(|(word, postings)| {
            let postings = postings.into_iter().map(|(message, times)| Posting { message, times });
            (word.into_bytes(), postings.collect())
        });
        (words.collect(), 50)
    })
}

proptest! {
    #[test]
    fn what_was_written_is_found((words, messages) in model()) {
        let file = write(&words, messages);
        let segment = Segment::open(file.path()).unwrap();
        prop_assert_eq!(segment.messages(), messages);
        for (word, postings) in &words {
            let found = segment.find(word).unwrap().unwrap();
            prop_assert_eq!(found.count, postings.len() as u64);
            prop_assert_eq!(&segment.postings(found).unwrap(), postings);
        }
        for other in ["", "a!", "aaaaa", "zz", "b\u{ff}"] {
            if !words.contains_key(other.as_bytes()) {
                prop_assert_eq!(segment.find(other.as_bytes()).unwrap(), None);
            }
        }
        let mut all = Model::new();
        let mut stream = segment.words();
        while let Some(found) = stream.next().unwrap() {
            all.insert(stream.word.clone(), segment.postings(found).unwrap());
        }
        prop_assert_eq!(all, words);
        let places = segment.places().unwrap();
        prop_assert_eq!(places.iter().count(), messages as usize);
        prop_assert_eq!(places.get(3), Some(Place { file: 1, span: Span { offset: 300, length: 4 } }));
        prop_assert_eq!(places.get(messages), None);
    }

    #[test]
    fn damage_anywhere_is_an_error_or_a_wrong_answer_but_never_a_panic(
        (words, messages) in model(), at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>(),
    ) {
        let file = write(&words, messages);
        let mut bytes = std::fs::read(file.path()).unwrap();
        let at = at.index(bytes.len());
        if cut { bytes.truncate(at) } else { bytes[at] = byte }
        std::fs::write(file.path(), &bytes).unwrap();
        if let Ok(segment) = Segment::open(file.path()) {
            for word in words.keys() {
                if let Ok(Some(found)) = segment.find(word) {
                    let _either = segment.postings(found);
                }
            }
            let mut stream = segment.words();
            while let Ok(Some(_)) = stream.next() {}
            let _either = segment.places();
        }
    }
}

#[test]
fn an_empty_segment_is_a_segment() {
    let file = write(&Model::new(), 0);
    let segment = Segment::open(file.path()).unwrap();
    assert_eq!((segment.messages(), segment.find(b"x").unwrap()), (0, None));
    assert!(segment.words().next().unwrap().is_none());
}

#[test]
fn lengths_are_roughly_kept() {
    for words in [0, 1, 31, 32, 33, 100, 1000, 100_000, 10_000_000] {
        let back = long_length(short_length(words));
        let off = (back - words as f32).abs() / (words as f32).max(1.0);
        assert!(off < 0.1, "{words} became {back}");
    }
    assert!((1..2000).all(|words| short_length(words) >= short_length(words - 1)));
}
