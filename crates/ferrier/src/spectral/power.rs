//! Power spectra.

use super::WaveNumbers;
use crate::{Array, Comm, Error, Plan, Real, Result};

/// The modes of a spectrum whose wave vectors are about equally long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shell {
    /// The middle of the shell.
    pub k: f64,
    /// The sum of |mode|^2, scaled so that all shells together are the mean
    /// of |field|^2 over the box.
    pub power: f64,
    /// Modes in the shell, those of a halved spectrum that are only implied
    /// counted too.
    pub modes: u64,
}

impl Shell {
    /// Power of a mode of the shell, on average.
    pub fn mean(&self) -> f64 {
        if self.modes == 0 { 0.0 } else { self.power / self.modes as f64 }
    }
}

/// The power of a spectrum that `plan` made, summed over shells: shell s has
/// the modes with |k| between s - 1/2 and s + 1/2 times the largest
/// [`WaveNumbers::unit`]. Of a batch all arrays together. Collective; allocates.
///
/// # Errors
/// [`Error::Array`] for an array that is not a complex spectrum of the plan;
/// axes that are not periodic.
pub fn power_spectrum<T: Real>(
    comm: &Comm,
    plan: &Plan<T>,
    waves: &WaveNumbers,
    spectrum: &Array<T>,
) -> Result<Vec<Shell>> {
    (0..3).try_for_each(|axis| waves.periodic(axis, "a power spectrum"))?;
    let part = plan.output_box();
    if !spectrum.is_complex() || spectrum.local_box() != part {
        return Err(Error::array(
            "spectrum",
            comm.rank(),
            format!("complex with the box {part}"),
            format!(
                "{} with the box {}",
                if spectrum.is_complex() { "complex" } else { "real" },
                spectrum.local_box()
            ),
        ));
    }
    let unit = (0..3).map(|axis| waves.unit(axis)).fold(0.0, f64::max);
    let corner: f64 = (0..3).map(|axis| waves.table(axis, |k| k * k).into_iter().fold(0.0, f64::max)).sum();
    let shells = if unit > 0.0 { (corner.sqrt() / unit).round() as usize + 1 } else { 1 };
    let mut sums = vec![0.0; 2 * shells];
    for batch in 0..plan.recipe().batch {
        each(part.lo, part.hi, |index| {
            let Some(at) = spectrum.complex_index(batch, index).filter(|_| waves.is_held(index)) else {
                return;
            };
            let k = waves.vector(index).map(|k| k * k).iter().sum::<f64>().sqrt();
            let shell = if unit > 0.0 { (k / unit).round() as usize } else { 0 };
            let weight = weight(waves, index);
            let mode = spectrum.complex()[at];
            let (re, im): (f64, f64) = (mode.re.widened(), mode.im.widened());
            sums[2 * shell] += weight * (re * re + im * im);
            sums[2 * shell + 1] += weight;
        });
    }
    let sums = comm.sum(&sums)?;
    let recipe = plan.recipe();
    let points: f64 = (0..3)
        .filter(|&a| recipe.kinds[a] != crate::Kind::Identity)
        .map(|a| recipe.shape[a] as f64)
        .product();
    let scale = 1.0 / (recipe.scale_forward * points).powi(2) / lines(plan);
    let shell = |(s, pair): (usize, &[f64])| Shell {
        k: s as f64 * unit,
        power: scale * pair[0],
        modes: pair[1] as u64,
    };
    let mut found: Vec<Shell> = sums.chunks_exact(2).enumerate().map(shell).collect();
    // The corner of the box around a sphere is farther away than any of its modes.
    let last = found.iter().rposition(|shell| shell.modes > 0).map_or(1, |last| last + 1);
    found.truncate(last);
    Ok(found)
}

/// Over axes that are not transformed the mean is taken.
fn lines<T: Real>(plan: &Plan<T>) -> f64 {
    let recipe = plan.recipe();
    (0..3).filter(|&a| recipe.kinds[a] == crate::Kind::Identity).map(|a| recipe.shape[a] as f64).product()
}

/// A mode of a halved axis stands for its mirror image too, unless it is its own.
fn weight(waves: &WaveNumbers, index: [usize; 3]) -> f64 {
    let alone = |axis: usize| {
        let at = index[waves.place(axis)];
        waves.at(axis, at) == 0.0 || waves.is_nyquist(axis, at)
    };
    (0..3).filter(|&axis| waves.is_halved(axis) && !alone(axis)).fold(1.0, |weight, _| 2.0 * weight)
}

fn each(lo: [usize; 3], hi: [usize; 3], mut visit: impl FnMut([usize; 3])) {
    for i in lo[0]..hi[0] {
        for j in lo[1]..hi[1] {
            for k in lo[2]..hi[2] {
                visit([i, j, k]);
            }
        }
    }
}
