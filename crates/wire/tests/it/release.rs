//! Versions and what each release can do.

use alhena_wire::release::{Feature, NEWEST_KNOWN, NotAVersion, OLDEST_SUPPORTED, TABLE, Version};

fn version(text: &str) -> Version {
    text.parse().unwrap()
}

#[test]
fn versions_are_read_as_the_cli_prints_them() {
    assert_eq!(version("0.61.0"), Version::new(0, 61, 0));
    assert_eq!(version(" v1.2.3\n"), Version::new(1, 2, 3));
    assert_eq!(version("0.56.0-preview.1+build.5"), version("0.56.0-preview.1"));
}

#[test]
fn what_is_no_version_is_refused() {
    for text in [
        "",
        "1",
        "1.2",
        "1.2.3.4",
        "a.b.c",
        "1.2.x",
        "1.2.-3",
        "+1.2.3",
        "1.2.3-",
        "1.2.3-a..b",
        // It would name a directory elsewhere.
        "1.2.3-../../elsewhere",
        "1.2.3-ü",
        "99999999999999999999.0.0",
        "1..2",
        "0.1.0-preview.01",
    ] {
        assert_eq!(text.parse::<Version>(), Err(NotAVersion), "{text}");
    }
    assert_eq!(NotAVersion.to_string(), "not a version number");
}

#[test]
fn versions_are_ordered_as_npm_orders_them() {
    let ordered = [
        "0.9.9",
        "0.11.0-nightly.20251001.abc",
        "0.11.0-nightly.20251002.1",
        "0.11.0-nightly.20251002.aaa",
        "0.11.0-nightly.20251002.aaa.1",
        "0.11.0-preview",
        "0.11.0-preview.2",
        "0.11.0-preview.10",
        "0.11.0",
        "0.11.3",
        "0.38.2",
        "0.61.0",
        "1.0.0",
    ];
    for (index, left) in ordered.iter().enumerate() {
        for (other, right) in ordered.iter().enumerate() {
            assert_eq!(version(left).cmp(&version(right)), index.cmp(&other), "{left} {right}");
        }
    }
    assert!(version("0.38.2") < NEWEST_KNOWN);
}

#[test]
fn features_begin_with_their_release() {
    for (feature, before, first) in [
        (Feature::Resume, "0.13.0", "0.15.3"),
        (Feature::CliHome, "0.24.5", "0.25.0"),
        (Feature::PlanMode, "0.25.0", "0.26.0"),
        (Feature::SlugDirectories, "0.28.2", "0.29.0"),
        (Feature::Policy, "0.29.0", "0.30.0"),
        (Feature::Acp, "0.32.1", "0.33.0"),
        (Feature::StatsModels, "0.33.2", "0.34.0"),
        (Feature::SkipTrust, "0.39.0", "0.39.1"),
        (Feature::SkipTrust, "0.39.0", "0.40.0"),
        (Feature::SessionIdFlag, "0.40.1", "0.41.0"),
        (Feature::JsonlSessions, "0.38.2", "0.39.0"),
        (Feature::SessionFileFlag, "0.42.0", "0.43.0"),
    ] {
        assert!(!version(before).has(feature), "{feature:?} {before}");
        assert!(version(first).has(feature), "{feature:?} {first}");
        assert!(NEWEST_KNOWN.has(feature));
    }
}

#[test]
fn features_can_end() {
    assert!(OLDEST_SUPPORTED.has(Feature::SaveMemory));
    assert!(version("0.43.0").has(Feature::SaveMemory));
    assert!(!version("0.44.0").has(Feature::SaveMemory));
}

#[test]
fn preview_counts_as_its_release_and_nightly_does_not() {
    assert!(version("0.39.0-preview.0").has(Feature::JsonlSessions));
    assert!(!version("0.39.0-nightly.20260401.abc").has(Feature::JsonlSessions));
    assert!(version("0.40.0-nightly.20260501.abc").has(Feature::JsonlSessions));
}

#[test]
fn oldest_supported_release_streams_and_the_one_before_does_not() {
    assert!(OLDEST_SUPPORTED.has(Feature::StreamJson));
    assert!(!version("0.10.0").has(Feature::StreamJson));
}

#[test]
fn table_is_complete_ordered_and_described() {
    assert!(TABLE.is_sorted_by_key(|row| row.since));
    let features: Vec<_> = Feature::all().collect();
    assert_eq!(features.len(), TABLE.len());
    for row in TABLE {
        assert_eq!(row.feature.row(), Some(row));
        assert_eq!(TABLE.iter().filter(|other| other.name == row.name).count(), 1, "{}", row.name);
        assert!(row.text.ends_with('.'), "{}", row.name);
        assert!(row.until.is_none_or(|until| until > row.since));
    }
}
