//! Line charts as SVG: both axes logarithmic, one colour for each line.

/// Left, right, top and bottom edge of the drawing, and its size.
const FRAME: [f64; 4] = [80.0, 620.0, 50.0, 400.0];
const SIZE: [u32; 2] = [860, 470];
/// Colours that colour-blind readers can tell apart (Okabe and Ito).
pub const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#b8a400"];

/// A line chart.
pub struct Chart {
    title: String,
    across: &'static str,
    up: &'static str,
    lines: Vec<(String, Vec<(f64, f64)>)>,
}

impl Chart {
    /// An empty chart. `across` and `up` name the axes.
    pub fn new(title: String, across: &'static str, up: &'static str) -> Self {
        Chart { title, across, up, lines: Vec::new() }
    }

    /// Adds a line; points without a logarithm are left out.
    pub fn line(&mut self, name: &str, mut points: Vec<(f64, f64)>) {
        points.retain(|&(x, y)| x > 0.0 && y > 0.0 && x.is_finite() && y.is_finite());
        if !points.is_empty() {
            self.lines.push((name.into(), points));
        }
    }

    /// The chart as SVG. `label` gives the label of a value on the horizontal axis.
    pub fn svg(&self, label: impl Fn(f64) -> String) -> String {
        let [left, right, top, bottom] = FRAME;
        let points = || self.lines.iter().flat_map(|(_, points)| points);
        let (low_x, high_x) = range(points().map(|point| point.0));
        let marks = marks(range(points().map(|point| point.1)));
        let (low_y, high_y) = (marks[0], marks[marks.len() - 1]);
        let x = |value: f64| left + (right - left) * (value / low_x).ln() / (high_x / low_x).ln();
        let y = |value: f64| bottom - (bottom - top) * (value / low_y).ln() / (high_y / low_y).ln();
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" font-family=\"sans-serif\" \
             font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
            SIZE[0], SIZE[1]
        );
        let mut write = |x: f64, y: f64, more: &str, what: &str| out += &text(x, y, more, what);
        let middle = "text-anchor=\"middle\"";
        write((left + right) / 2.0, 25.0, "text-anchor=\"middle\" font-size=\"16\"", &self.title);
        write((left + right) / 2.0, bottom + 50.0, middle, self.across);
        let (at, turned) = ((top + bottom) / 2.0, 22.0);
        write(turned, at, &format!("{middle} transform=\"rotate(-90 {turned} {at})\""), self.up);
        let mut sizes: Vec<f64> = points().map(|point| point.0).collect();
        sizes.sort_by(f64::total_cmp);
        sizes.dedup();
        for size in &sizes {
            write(x(*size), bottom + 20.0, middle, &label(*size));
        }
        for value in &marks {
            write(left - 8.0, y(*value) + 4.0, "text-anchor=\"end\"", &mark(*value));
        }
        for (number, (name, _)) in self.lines.iter().enumerate() {
            let fill = format!("fill=\"{}\"", COLOURS[number % COLOURS.len()]);
            write(right + 15.0, top + 15.0 + 20.0 * number as f64, &fill, name);
        }
        for value in &marks {
            let height = y(*value);
            out += &format!("<path d=\"M{left} {height:.1}H{right}\" stroke=\"#dddddd\"/>\n");
        }
        out += &format!("<path d=\"M{left} {top}V{bottom}H{right}\" stroke=\"black\" fill=\"none\"/>\n");
        for (number, (_, points)) in self.lines.iter().enumerate() {
            let colour = COLOURS[number % COLOURS.len()];
            let path: Vec<_> =
                points.iter().map(|point| format!("{:.1},{:.1}", x(point.0), y(point.1))).collect();
            out += &format!(
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>\n",
                path.join(" ")
            );
            // A line of one point is visible by its dot only.
            for (across, up) in points {
                out += &format!(
                    "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{colour}\"/>\n",
                    x(*across),
                    y(*up)
                );
            }
        }
        out + "</svg>\n"
    }
}

/// A round number in few characters.
fn mark(value: f64) -> String {
    if value < 1e-3 { format!("{value:.0e}") } else { format!("{}", (value * 1e9).round() / 1e9) }
}

/// A text at a point, with more attributes.
pub fn text(x: f64, y: f64, more: &str, what: &str) -> String {
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" {more}>{}</text>\n", escaped(what))
}

/// Text with XML's special characters escaped.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

/// Least and largest value, made different if they are equal.
fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) =
        values.fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), v| (low.min(v), high.max(v)));
    match low.is_finite() {
        false => (1.0, 10.0),
        true if high > low => (low, high),
        true => (low / 2.0, high * 2.0),
    }
}

/// Round numbers from one at or below `low` to one at or above `high`: powers
/// of ten, or closer ones where those would leave most of the chart empty.
fn marks((low, high): (f64, f64)) -> Vec<f64> {
    let digits: &[f64] = if high / low < 20.0 { &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0] } else { &[1.0] };
    let powers = low.log10().floor() as i32 - 1..=high.log10().ceil() as i32 + 1;
    let all: Vec<f64> = powers.flat_map(|power| digits.iter().map(move |d| d * 10f64.powi(power))).collect();
    let first = all.iter().rposition(|mark| *mark <= low).unwrap_or(0);
    let last = all.iter().position(|mark| *mark >= high).unwrap_or(all.len() - 1);
    all[first..=last.max(first + 1)].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charts_of_few_points_are_drawn() {
        for points in
            [vec![], vec![(8.0, 1.0)], vec![(8.0, 0.0), (16.0, f64::NAN)], vec![(1.0, 2.0), (9.0, 40.0)]]
        {
            let mut chart = Chart::new("a < b & c".into(), "x", "y");
            chart.line("line", points);
            let svg = chart.svg(|x| x.to_string());
            assert!(svg.contains("a &lt; b &amp; c") && svg.ends_with("</svg>\n"), "{svg}");
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }

    #[test]
    fn marks_are_round_and_enclose_everything() {
        assert_eq!(marks((33.0, 51.0)), [30.0, 40.0, 50.0, 60.0]);
        assert_eq!(marks((0.02, 30.0)), [0.01, 0.1, 1.0, 10.0, 100.0]);
        for (low, high) in [(1.0, 2.0), (1e-9, 1e9), (9.9, 10.1), (8.0, 32.0)] {
            let found = marks((low, high));
            assert!(found.len() > 1 && found[0] <= low && found[found.len() - 1] >= high, "{found:?}");
            assert!(found.windows(2).all(|two| two[0] < two[1]), "{found:?}");
        }
    }
}
