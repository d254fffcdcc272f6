//! Strong and weak scaling beside the roofline, and the share of each step.

use super::chart::{COLOURS, Chart, text};
use crate::table::distinct;

/// Height of a chart.
const CHART: f64 = 470.0;
/// Edges of the bars: left, right, top below the upper edge of the panel, bottom.
const BARS: [f64; 4] = [80.0, 500.0, 50.0, 330.0];
/// Width and height of the drawing.
const SIZE: [f64; 2] = [860.0, 2.0 * CHART + 380.0];

/// A number of ranks.
#[derive(Clone, Debug)]
pub struct ScalingPoint {
    /// The ranks.
    pub ranks: usize,
    /// Predicted or measured speed.
    pub gflops: f64,
    /// The roofline of the heFFTe paper.
    pub roofline_gflops: f64,
    /// Speed if nodes did nothing but send what leaves them.
    pub network_gflops: Option<f64>,
    /// Names and milliseconds of the steps.
    pub steps: Vec<(String, f64)>,
}

/// The chart.
#[derive(Clone, Debug)]
pub struct ScalingChart {
    /// The problem and the machine.
    pub title: String,
    /// The same array on more and more ranks.
    pub strong: Vec<ScalingPoint>,
    /// Arrays that grow with the ranks.
    pub weak: Vec<ScalingPoint>,
}

impl ScalingChart {
    /// The chart as SVG: three panels, one below the other.
    pub fn svg(&self) -> String {
        let [width, height] = SIZE;
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" \
             font-size=\"13\">\n<rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n"
        );
        out += &panel(&format!("strong scaling, {}", self.title), &self.strong, 0.0);
        out += &panel(&format!("weak scaling, {} and more", self.title), &self.weak, CHART);
        out += &shares(&self.strong, 2.0 * CHART);
        out + "</svg>\n"
    }
}

/// A line chart at this height of the drawing.
fn panel(title: &str, points: &[ScalingPoint], top: f64) -> String {
    let mut chart = Chart::new(title.into(), "ranks", "Gflop/s");
    let line = |value: &dyn Fn(&ScalingPoint) -> Option<f64>| -> Vec<(f64, f64)> {
        points.iter().filter_map(|point| Some((point.ranks as f64, value(point)?))).collect()
    };
    chart.line("model", line(&|point| Some(point.gflops)));
    chart.line("roofline (eq. 2)", line(&|point| Some(point.roofline_gflops)));
    chart.line("bytes that leave nodes", line(&|point| point.network_gflops));
    chart.svg(|ranks| format!("{ranks}")).replacen("<svg ", &format!("<svg y=\"{top}\" "), 1)
}

/// Stacked bars: the share of each step.
fn shares(points: &[ScalingPoint], top: f64) -> String {
    let [left, right, above, bottom] = BARS;
    let (above, bottom) = (top + above, top + bottom);
    let names = distinct(points.iter().flat_map(|point| &point.steps).map(|(name, _)| name.clone()));
    let colour = |name: &str| {
        let at = names.iter().position(|known| known == name).unwrap_or(0);
        (COLOURS[at % COLOURS.len()], if at < COLOURS.len() { 1.0 } else { 0.5 })
    };
    let mut out = text(
        (left + right) / 2.0,
        top + 25.0,
        "text-anchor=\"middle\" font-size=\"16\"",
        "share of each step",
    );
    let width = (right - left) / points.len().max(1) as f64;
    for (number, point) in points.iter().enumerate() {
        let total: f64 = point.steps.iter().map(|step| step.1).sum();
        let (x, mut y) = (left + width * number as f64, bottom);
        for (name, ms) in &point.steps {
            let height = (bottom - above) * ms / total.max(1e-12);
            y -= height;
            let (fill, opacity) = colour(name);
            out += &format!(
                "<rect x=\"{:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{height:.1}\" fill=\"{fill}\" \
                 opacity=\"{opacity}\"/>\n",
                x + 0.1 * width,
                0.8 * width
            );
        }
        out += &text(x + width / 2.0, bottom + 18.0, "text-anchor=\"middle\"", &point.ranks.to_string());
    }
    for (number, name) in names.iter().enumerate() {
        let y = above + 10.0 + 18.0 * number as f64;
        let (fill, opacity) = colour(name);
        out += &format!(
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"12\" height=\"12\" fill=\"{fill}\" opacity=\"{opacity}\"/>\n",
            right + 15.0,
            y - 10.0
        );
        out += &text(right + 32.0, y, "font-size=\"12\"", name);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_panels_are_drawn_and_finite() {
        let point = |ranks: usize| ScalingPoint {
            ranks,
            gflops: ranks as f64,
            roofline_gflops: 2.0 * ranks as f64,
            network_gflops: (ranks > 1).then_some(3.0),
            steps: vec![("a < b".into(), 1.0), ("c".into(), 0.0)],
        };
        for points in [vec![], vec![point(1)], vec![point(1), point(8)]] {
            let chart = ScalingChart { title: "8 & 9".into(), strong: points.clone(), weak: points };
            let svg = chart.svg();
            assert!(svg.ends_with("</svg>\n") && svg.contains("8 &amp; 9"), "{svg}");
            assert!(!svg.contains("NaN") && !svg.contains("inf\""), "{svg}");
            assert_eq!(svg.matches("<svg ").count(), svg.matches("</svg>").count());
        }
    }
}
