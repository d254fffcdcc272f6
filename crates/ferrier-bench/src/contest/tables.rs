//! The report of a contest as text.

use ferrier::codec::RAW;

use super::report::BenchReport;
use super::{breakdown, sweep, variants};
use crate::table::{bytes, columns, digits, pairs, plural, shape_text};
use crate::tiling::overlap_text;
use crate::timing::Times;
use crate::wisdom_text::wisdom_line;

impl BenchReport {
    /// The report as text. `profile`: with a table of the steps.
    pub fn text(&self, profile: bool) -> String {
        let mut out = self.heading();
        let ndim = self.shape.len();
        if !self.sweep.is_empty() {
            out += &format!("{}\nthe fastest:\n", sweep::text(&self.sweep));
        }
        if !self.variants.is_empty() {
            out += &format!("{}\nthe fastest:\n", variants::text(&self.variants, ndim));
        }
        out += &self.times_table();
        out.push('\n');
        let limit = 100.0 * self.limit_fraction;
        let mut rows = vec![
            ("speed", format!("{} GFlop/s", digits(self.gflops))),
            ("of the memory limit", format!("{limit:.0} % (3 passes at {} GB/s)", digits(self.copy_gb_s))),
            ("error, round trip", error_text(self.error_l2)),
            ("error, spectrum", self.spectrum_error()),
            ("memory per rank", bytes(self.memory_bytes_per_rank)),
            ("between ranks", bytes(self.wire_bytes)),
        ];
        if let Some(overlap) = &self.overlap {
            rows.push(("tiles", overlap_text(overlap, ndim)));
        }
        rows.push(("planning", format!("{} ms", digits(self.planning_ms))));
        out += &pairs(&rows);
        out += &wisdom_line(self.wisdom.as_ref());
        if profile {
            out += &format!("\n{}", self.profile_table());
        }
        if !self.breakdown.is_empty() {
            out += &format!("\n{}", breakdown::text(&self.breakdown));
        }
        out
    }

    /// The transform, the GPU and the notes.
    fn heading(&self) -> String {
        let batch = if self.batch == 1 { String::new() } else { format!(", batch {}", self.batch) };
        let wire = self.wire.as_ref().map_or(String::new(), |wire| format!(", wire {wire}"));
        let codec = if self.codec == RAW { String::new() } else { format!(", codec {}", self.codec) };
        let mut out = format!(
            "{} {} {}{batch}{}: {}{} of {}{wire}, exchange {}{codec}, kernel {}, {} in, {} out\n",
            shape_text(&self.shape),
            self.kind,
            self.precision,
            if self.in_place { ", in place" } else { "" },
            plural(self.ranks, "rank"),
            if self.nodes > 1 { format!(" on {} nodes", self.nodes) } else { String::new() },
            plural(self.threads, "thread"),
            self.exchange,
            self.kernel,
            self.in_layout,
            self.out_layout,
        );
        if let Some(gpu) = &self.gpu {
            out += &format!("on {gpu}, timed by GPU events\n");
        }
        self.notes.iter().for_each(|note| out += &format!("note: {note}\n"));
        out.push('\n');
        out
    }

    /// Times of both directions and of the peers.
    fn times_table(&self) -> String {
        let row = |name: String, times: Times, ratio: Option<f64>| {
            vec![name, digits(times.best_ms), digits(times.median_ms), ratio.map_or(String::new(), digits)]
        };
        let base = (!self.peers.is_empty()).then_some(1.0);
        let mut rows =
            vec![row("forward".into(), self.forward, base), row("backward".into(), self.backward, None)];
        for peer in &self.peers {
            let name = format!("{} ({}, {})", peer.name, peer.version, peer.placement);
            rows.push(row(name, peer.times, Some(peer.ratio)));
        }
        let heads = ["", "best ms", "median ms", "ratio"];
        columns(if base.is_none() { &heads[..3] } else { &heads }, &rows)
    }

    /// The error of the spectrum, and its bound if there is one.
    fn spectrum_error(&self) -> String {
        let bound = match self.error_bound > 0.0 {
            true => format!(" (at most {:.1e})", self.error_bound),
            false => String::new(),
        };
        format!("{:.2e}{bound}", self.error_forward)
    }

    /// Per step: time, bytes, speed, fraction of the copy speed, GFlop/s.
    fn profile_table(&self) -> String {
        let rows: Vec<_> = self
            .steps
            .iter()
            .map(|step| {
                let speed = step.bytes as f64 / step.ms / 1e6;
                let flops = step.flops / step.ms / 1e6;
                let copy = format!("{:.0} %", 100.0 * speed / self.copy_gb_s);
                let flops = if flops > 0.0 { digits(flops) } else { String::new() };
                vec![step.name.clone(), digits(step.ms), bytes(step.bytes), digits(speed), copy, flops]
            })
            .collect();
        columns(&["step", "ms", "bytes", "GB/s", "of copy", "GFlop/s"], &rows)
    }
}

/// The error of a round trip, which is unknown if modes are dropped.
fn error_text(error: f64) -> String {
    if error.is_nan() { "not all modes are kept".into() } else { format!("{error:.2e}") }
}
