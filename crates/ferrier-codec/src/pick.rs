//! The cheapest codec that keeps a tolerance whatever the data.

use crate::number::Number;
use crate::{Codec, codec};

/// What [`pick`] chose.
#[derive(Clone, Debug, PartialEq)]
pub struct Pick {
    /// The codec, with its parameter.
    pub name: String,
    /// What a chunk of the asked length takes.
    pub bytes: usize,
    /// The bound that it keeps.
    pub bound: f64,
}

/// Of the codecs whose chunks have a fixed length, that with the fewest bytes
/// whose loss is at most `tolerance` times the norm, for any finite chunk of
/// at most `numbers` numbers. What holds for every chunk holds for the whole
/// message. `raw` where nothing less does; `within` takes fewer bytes where
/// lengths need not be known beforehand.
///
/// ```
/// let pick = ferrier_codec::pick::<f64>(1e-4, 4096);
/// assert_eq!(pick.name, "block:17");
/// assert!(pick.bytes < 4096 * 8 * 3 / 10);
/// ```
pub fn pick<T: Number>(tolerance: f64, numbers: usize) -> Pick {
    // Of equal bytes the first wins: the casts are the fastest.
    let casts = ["raw", "f32", "f16", "bf16"].map(String::from);
    let blocks = (2..=T::MANTISSA + 1).map(|bits| format!("block:{bits}"));
    let trims = (1..=T::MANTISSA).map(|bits| format!("trim:{bits}"));
    let all = casts.into_iter().chain(blocks).chain(trims);
    let picks = all.filter_map(|name| {
        let codec: Box<dyn Codec<T>> = codec(&name).ok()?;
        let bound = codec.bound(numbers)?;
        (bound <= tolerance).then(|| Pick { bytes: codec.max_bytes(numbers), name, bound })
    });
    let raw = Pick { name: "raw".into(), bytes: numbers * T::BYTES, bound: 0.0 };
    picks.min_by_key(|pick| pick.bytes).unwrap_or(raw)
}
