//! Line charts as SVG: both axes logarithmic, one colour for each line.

/// Left, right, top and bottom edge of the drawing, and its size.
const FRAME: [f64; 4] = [80.0, 620.0, 50.0, 400.0];
const SIZE: [u32; 2] = [860, 470];
/// Colours that people who see few of them can tell apart (Okabe and Ito).
pub const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#b8a400"];

/// A chart in the making.
pub struct Chart {
    title: String,
    across: &'static str,
    up: &'static str,
    lines: Vec<(String, Vec<(f64, f64)>)>,
}

impl Chart {
    /// An empty one.
    pub fn new(title: String, across: &'static str, up: &'static str) -> Self {
        Chart { title, across, up, lines: Vec::new() }
    }

    /// Adds a line; points that a logarithm does not have are left out.
    pub fn line(&mut self, name: &str, mut points: Vec<(f64, f64)>) {
        points.retain(|&(x, y)| x > 0.0 && y > 0.0 && x.is_finite() && y.is_finite());
        if !points.is_empty() {
            self.lines.push((name.into(), points));
        }
    }

    /// The drawing. `label` names a place on the axis across.
    pub fn svg(&self, label: impl Fn(f64) -> String) -> String {
        let [left, right, top, bottom] = FRAME;
        let points = || self.lines.iter().flat_map(|(_, points)| points);
        let (low_x, high_x) = range(points().map(|point| point.0), 1.0);
        let (least, most) = range(points().map(|point| point.1), 1.0);
        // Where all lie close together, powers of ten would leave most of the chart empty.
        let base: f64 = if most / least < 8.0 { 2.0 } else { 10.0 };
        let (low_y, high_y) = range(points().map(|point| point.1), base);
        let x = |value: f64| left + (right - left) * (value / low_x).ln() / (high_x / low_x).ln();
        let y = |value: f64| bottom - (bottom - top) * (value / low_y).ln() / (high_y / low_y).ln();
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" font-family=\"sans-serif\" \
             font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
            SIZE[0], SIZE[1]
        );
        let mut text = |x: f64, y: f64, more: &str, what: &str| {
            out += &format!("<text x=\"{x:.1}\" y=\"{y:.1}\" {more}>{}</text>\n", escaped(what));
        };
        let middle = "text-anchor=\"middle\"";
        text((left + right) / 2.0, 25.0, "text-anchor=\"middle\" font-size=\"16\"", &self.title);
        text((left + right) / 2.0, bottom + 50.0, middle, self.across);
        let (at, turned) = ((top + bottom) / 2.0, 22.0);
        text(turned, at, &format!("{middle} transform=\"rotate(-90 {turned} {at})\""), self.up);
        let mut sizes: Vec<f64> = points().map(|point| point.0).collect();
        sizes.sort_by(f64::total_cmp);
        sizes.dedup();
        for size in &sizes {
            text(x(*size), bottom + 20.0, middle, &label(*size));
        }
        let powers = (low_y.log(base).round() as i32)..=(high_y.log(base).round() as i32);
        for power in powers.clone() {
            let value = base.powi(power);
            text(left - 8.0, y(value) + 4.0, "text-anchor=\"end\"", &format!("{value}"));
        }
        for (number, (name, _)) in self.lines.iter().enumerate() {
            let fill = format!("fill=\"{}\"", COLOURS[number % COLOURS.len()]);
            text(right + 15.0, top + 15.0 + 20.0 * number as f64, &fill, name);
        }
        for power in powers {
            let height = y(base.powi(power));
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
        }
        out + "</svg>\n"
    }
}

/// Text as it may stand in a drawing.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

/// Least and largest; where `step` is above 1, whole powers of it around them.
fn range(values: impl Iterator<Item = f64>, step: f64) -> (f64, f64) {
    let (low, high) =
        values.fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), v| (low.min(v), high.max(v)));
    if !low.is_finite() {
        return (1.0, 10.0);
    }
    if step > 1.0 {
        let (low, high) = (low.log(step).floor(), high.log(step).ceil());
        return (step.powf(low), step.powf(if high > low { high } else { low + 1.0 }));
    }
    if high > low { (low, high) } else { (low / 2.0, high * 2.0) }
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
}
