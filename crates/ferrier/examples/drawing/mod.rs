//! What `taylor_green` draws.

/// A curve over time as SVG.
pub fn curve(title: &str, points: &[[f64; 2]]) -> String {
    let most = |at: usize| points.iter().map(|point| point[at]).fold(f64::MIN_POSITIVE, f64::max);
    let (end, top) = (most(0), most(1));
    let peak = points.iter().find(|point| point[1] == top).map_or(0.0, |point| point[0]);
    let place = |point: &[f64; 2]| {
        format!("{:.1},{:.1}", 60.0 + 560.0 * point[0] / end, 340.0 - 290.0 * point[1] / top)
    };
    let path: Vec<String> = points.iter().map(place).collect();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"660\" height=\"390\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"330\" y=\"25\" text-anchor=\"middle\" font-size=\"16\">{title}</text>\n\
         <path d=\"M60 50V340H620\" stroke=\"black\" fill=\"none\"/>\n\
         <text x=\"55\" y=\"55\" text-anchor=\"end\">{top:.4}</text>\n\
         <text x=\"620\" y=\"360\" text-anchor=\"end\">t = {end}</text>\n\
         <text x=\"330\" y=\"378\" text-anchor=\"middle\">the peak is at t = {peak:.2}</text>\n\
         <polyline points=\"{}\" fill=\"none\" stroke=\"#0072b2\" stroke-width=\"2\"/>\n</svg>\n",
        path.join(" ")
    )
}

/// The length of a vector at the first `count` places of three components.
pub fn magnitude(numbers: &[f64], component: usize, count: usize) -> Vec<f64> {
    let length = |i: usize| (0..3).map(|c| numbers[c * component + i].powi(2)).sum::<f64>().sqrt();
    (0..count.min(component)).map(length).collect()
}

/// A grey picture of `width` columns, the largest value white.
pub fn picture(values: &[f64], width: usize) -> Vec<u8> {
    let top = values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let mut bytes = format!("P5\n{width} {}\n255\n", values.len() / width.max(1)).into_bytes();
    bytes.extend(values.iter().map(|value| (255.0 * value / top) as u8));
    bytes
}
