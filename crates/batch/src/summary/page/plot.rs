//! Plots as SVG. Colours are the page's: the same picture is readable in the light and in the dark.

use std::fmt::Write;

use super::escape;

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 200.0;
/// Room for what stands beside a plot.
const LEFT: f64 = 40.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 22.0;
const BOTTOM: f64 = 26.0;
const MOST_BINS: usize = 24;

/// A row of a plot with bars.
pub struct Bar<'a> {
    pub name: &'a str,
    pub count: u64,
    pub class: &'a str,
}

/// How many values are how large. `marks` are values with a name, `shown` says a value.
pub fn histogram(
    values: &[f64],
    marks: &[(f64, String)],
    shown: &dyn Fn(f64) -> String,
    verb: &str,
) -> String {
    let most = values.iter().copied().fold(0.0, f64::max);
    let bins = (values.len() as f64).sqrt().ceil().clamp(1.0, MOST_BINS as f64) as usize;
    let bins = if values.len() > 4 { bins.max(8) } else { bins };
    let step = if most > 0.0 { most / bins as f64 } else { 1.0 };
    let mut counts = vec![0_u64; bins];
    for value in values {
        let bin = ((value / step) as usize).min(bins - 1);
        if let Some(count) = counts.get_mut(bin) {
            *count += 1;
        }
    }
    let highest = counts.iter().copied().max().unwrap_or(0).max(1);
    let (across, up) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
    let label = format!("{} values, the largest {}", values.len(), shown(most));
    let mut svg = open(HEIGHT, &label);
    axis(highest, &mut svg);
    let width = across / bins as f64;
    for (bin, count) in counts.iter().enumerate() {
        let tall = up * *count as f64 / highest as f64;
        let (x, y) = (LEFT + bin as f64 * width, TOP + up - tall);
        let (from, to) = (shown(bin as f64 * step), shown((bin + 1) as f64 * step));
        let _infallible = writeln!(
            svg,
            "<rect class=\"bar\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{tall:.1}\"><title>{}</title></rect>",
            (width - 1.5).max(0.5),
            escape(&format!("{count} {verb} {from} to {to}"))
        );
    }
    let place = |value: f64| LEFT + across * if most > 0.0 { (value / most).clamp(0.0, 1.0) } else { 0.0 };
    let mut last = f64::NEG_INFINITY;
    for (row, (value, name)) in marks.iter().enumerate() {
        let x = place(*value);
        let _infallible = writeln!(
            svg,
            "<line class=\"mark\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{:.1}\"/>",
            TOP + up
        );
        // Two that are close stand above each other.
        let y = if x - last < 90.0 && row > 0 { 20.0 } else { 9.0 };
        last = x;
        text(x, y, if x > WIDTH / 2.0 { "end" } else { "start" }, name, &mut svg);
    }
    for (value, anchor) in [(0.0, "start"), (most / 2.0, "middle"), (most, "end")] {
        if value > 0.0 || anchor == "start" {
            text(place(value), HEIGHT - 8.0, anchor, &shown(value), &mut svg);
        }
    }
    svg.push_str("</svg>");
    svg
}

/// How many of each there are.
pub fn bars(rows: &[Bar<'_>]) -> String {
    const ROW: f64 = 26.0;
    const NAMES: f64 = 130.0;
    let highest = rows.iter().map(|row| row.count).max().unwrap_or(0).max(1);
    let mut svg = open(ROW * rows.len() as f64 + 8.0, "how many there are of each");
    for (at, row) in rows.iter().enumerate() {
        let y = at as f64 * ROW + 4.0;
        let wide = (WIDTH - NAMES - 60.0) * row.count as f64 / highest as f64;
        text(NAMES - 8.0, y + 15.0, "end", row.name, &mut svg);
        let _infallible = writeln!(
            svg,
            "<rect class=\"bar {}\" x=\"{NAMES}\" y=\"{y:.1}\" width=\"{wide:.1}\" height=\"20\"><title>{}</title></rect>",
            row.class,
            escape(&format!("{}: {}", row.name, row.count))
        );
        text(NAMES + wide + 6.0, y + 15.0, "start", &row.count.to_string(), &mut svg);
    }
    svg.push_str("</svg>");
    svg
}

fn open(height: f64, label: &str) -> String {
    format!("<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">\n", escape(label))
}

fn axis(highest: u64, svg: &mut String) {
    let up = HEIGHT - TOP - BOTTOM;
    for (share, count) in [(0.0, 0), (0.5, highest / 2), (1.0, highest)] {
        if share == 0.5 && highest < 2 {
            continue;
        }
        let y = TOP + up - up * count as f64 / highest as f64;
        let _infallible = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>",
            WIDTH - RIGHT
        );
        text(LEFT - 6.0, y + 4.0, "end", &count.to_string(), svg);
    }
}

fn text(x: f64, y: f64, anchor: &str, words: &str, svg: &mut String) {
    let _infallible =
        writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>", escape(words));
}
