//! What `taylor_green` draws, as SVG: a curve over time, and a picture of a plane.

/// The head of a drawing.
fn sheet(width: usize, height: usize, title: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{}\" y=\"25\" text-anchor=\"middle\" font-size=\"16\">{title}</text>\n",
        width / 2
    )
}

/// A curve over time.
pub fn curve(title: &str, points: &[[f64; 2]]) -> String {
    let most = |at: usize| points.iter().map(|point| point[at]).fold(f64::MIN_POSITIVE, f64::max);
    let (end, top) = (most(0), most(1));
    let peak = points.iter().find(|point| point[1] == top).map_or(0.0, |point| point[0]);
    // A few hundred points look like all of them.
    let every = points.len().div_ceil(300).max(1);
    let place = |point: &[f64; 2]| {
        format!("{:.1},{:.1}", 60.0 + 560.0 * point[0] / end, 340.0 - 290.0 * point[1] / top)
    };
    let path: Vec<String> = points.iter().step_by(every).map(place).collect();
    let ticks: String = (0..=end as usize)
        .map(|t| {
            let x = 60.0 + 560.0 * t as f64 / end;
            format!(
                "<path d=\"M{x:.1} 340v5\" stroke=\"black\"/><text x=\"{x:.1}\" y=\"360\" text-anchor=\"middle\">{t}</text>\n"
            )
        })
        .collect();
    format!(
        "{}<path d=\"M60 50V340H620\" stroke=\"black\" fill=\"none\"/>\n{ticks}\
         <text x=\"55\" y=\"55\" text-anchor=\"end\">{top:.4}</text>\n\
         <text x=\"55\" y=\"344\" text-anchor=\"end\">0</text>\n\
         <text x=\"340\" y=\"380\" text-anchor=\"middle\">time; the peak is at t = {peak:.2}</text>\n\
         <polyline points=\"{}\" fill=\"none\" stroke=\"#0072b2\" stroke-width=\"2\"/>\n</svg>\n",
        sheet(660, 395, title),
        path.join(" ")
    )
}

/// The length of a vector at the first `count` places of three components.
pub fn magnitude(numbers: &[f64], component: usize, count: usize) -> Vec<f64> {
    let length = |i: usize| (0..3).map(|c| numbers[c * component + i].powi(2)).sum::<f64>().sqrt();
    (0..count.min(component)).map(length).collect()
}

/// Steps of brightness.
const LEVELS: usize = 16;

/// A plane of `width` columns in steps of brightness, the largest values dark. Neighbours of one
/// step are one stroke, so that the drawing stays small.
pub fn plane(title: &str, values: &[f64], width: usize) -> String {
    let rows = values.len() / width.max(1);
    let top = values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    // The root, since a few places are far above all others.
    let level = |value: f64| ((value / top).sqrt() * LEVELS as f64).min(LEVELS as f64 - 1.0) as usize;
    let mut strokes = vec![String::new(); LEVELS];
    for row in 0..rows {
        let line: Vec<usize> = values[row * width..][..width].iter().map(|&value| level(value)).collect();
        let mut at = 0;
        for run in line.chunk_by(|a, b| a == b) {
            strokes[run[0]] += &format!("M{at} {row}h{}", run.len());
            at += run.len();
        }
    }
    let scale = 512.0 / width.max(1) as f64;
    let paths: String = (1..LEVELS)
        .map(|step| {
            let dark = 255 - 255 * step / (LEVELS - 1);
            format!("<path stroke=\"rgb({dark},{dark},{})\" d=\"{}\"/>\n", (dark + 255) / 2, strokes[step])
        })
        .collect();
    format!(
        "{}<g transform=\"translate(24 {:.1}) scale({scale})\" fill=\"none\" stroke-width=\"1.03\">\n{paths}</g>\n\
         <rect x=\"24\" y=\"45\" width=\"512\" height=\"{:.1}\" fill=\"none\" stroke=\"black\"/>\n</svg>\n",
        sheet(560, 570, title),
        45.0 + scale / 2.0,
        scale * rows as f64
    )
}
