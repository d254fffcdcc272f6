//! The cheapest codec of a fixed rate that keeps a tolerance for all data.

use crate::codec::Codec;
use crate::table::{Scalar, codec};

/// The result of [`cheapest_fixed_rate`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FixedRateCodec {
    /// The codec, with its parameter.
    pub name: String,
    /// Bytes of a chunk of the given length.
    pub bytes: usize,
    /// An upper bound of loss over norm.
    pub bound: f64,
}

/// Among the codecs whose chunks have a fixed length, the one with the fewest
/// bytes whose loss is at most `tolerance` times the norm, for any finite chunk
/// of at most `count` values. A bound of every chunk bounds the whole message.
/// `raw` if no other codec keeps the tolerance. `within` takes fewer bytes, but
/// its lengths vary. Allocates.
///
/// ```
/// let cheapest = ferrier_codec::cheapest_fixed_rate::<f64>(1e-4, 4096);
/// assert_eq!(cheapest.name, "block:17");
/// assert!(cheapest.bytes < 4096 * 8 * 3 / 10);
/// ```
pub fn cheapest_fixed_rate<T: Scalar>(tolerance: f64, count: usize) -> FixedRateCodec {
    // For equal bytes the first is taken: the casts are the fastest.
    let casts = ["raw", "f32", "f16", "bf16"].map(String::from);
    let blocks = (2..=T::MANTISSA + 1).map(|bits| format!("block:{bits}"));
    let trims = (1..=T::MANTISSA).map(|bits| format!("trim:{bits}"));
    let all = casts.into_iter().chain(blocks).chain(trims);
    let candidates = all.filter_map(|name| {
        let codec: Box<dyn Codec<T>> = codec(&name).ok()?;
        let bound = codec.bound(count)?;
        (bound <= tolerance).then(|| FixedRateCodec { bytes: codec.max_bytes(count), name, bound })
    });
    let raw = FixedRateCodec { name: "raw".into(), bytes: count * T::BYTES, bound: 0.0 };
    candidates.min_by_key(|candidate| candidate.bytes).unwrap_or(raw)
}
