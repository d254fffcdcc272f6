//! Power spectra.

use super::wave_numbers::WaveNumbers;
use crate::{Array, Comm, Error, Plan, Real, Result};

/// The modes of a spectrum whose wave vectors have about the same length.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Shell {
    /// Length of the wave vectors at the middle of the shell.
    pub k: f64,
    /// The sum of |mode|^2, scaled so that the sum over all shells is the mean
    /// of |field|^2 over the box.
    pub power: f64,
    /// Number of modes in the shell, with the modes that a halved spectrum
    /// omits.
    pub modes: u64,
}

impl Shell {
    /// Mean power of a mode of the shell.
    pub fn mean(&self) -> f64 {
        if self.modes == 0 { 0.0 } else { self.power / self.modes as f64 }
    }
}

/// The power of a spectrum of `plan`, summed over shells: shell s has the modes
/// with |k| between s - 1/2 and s + 1/2 times the largest [`WaveNumbers::unit`].
/// The arrays of a batch are added. Collective; allocates.
///
/// # Errors
/// [`Error::Array`] if the array is not a complex spectrum of the plan;
/// [`Error::Problem`] if an axis is not periodic.
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
    // Shells beyond the last mode of a sphere are empty.
    let last = found.iter().rposition(|shell| shell.modes > 0).map_or(1, |last| last + 1);
    found.truncate(last);
    Ok(found)
}

/// Number of lines along axes that are not transformed: power is averaged over them.
fn lines<T: Real>(plan: &Plan<T>) -> f64 {
    let recipe = plan.recipe();
    (0..3).filter(|&a| recipe.kinds[a] == crate::Kind::Identity).map(|a| recipe.shape[a] as f64).product()
}

/// 2 for a mode of a halved axis, which also represents its complex conjugate, unless the two are the same.
fn weight(waves: &WaveNumbers, index: [usize; 3]) -> f64 {
    let self_conjugate = |axis: usize| {
        let at = index[waves.place(axis)];
        waves.at(axis, at) == 0.0 || waves.is_nyquist(axis, at)
    };
    (0..3).filter(|&axis| waves.is_halved(axis) && !self_conjugate(axis)).fold(1.0, |weight, _| 2.0 * weight)
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
