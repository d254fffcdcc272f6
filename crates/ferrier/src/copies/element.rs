//! Element types of redistributions and ghost cells.

use num_complex::Complex;

/// Plain data that can be copied to another rank, which may be another process: integers, floating-point and complex
/// numbers, arrays of them, and structures of them that declare it.
///
/// ```
/// #[derive(Clone, Copy)]
/// #[repr(C)]
/// struct Cell {
///     density: f64,
///     velocity: [f64; 3],
///     material: u32,
/// }
/// // SAFETY: plain numbers; zeros are a valid cell.
/// unsafe impl ferrier::Element for Cell {}
/// ```
///
/// # Safety
/// A value holds no pointer, reference or other handle of its process, and a value of all zero bytes is valid.
pub unsafe trait Element: Copy + Send + Sync + 'static {}

macro_rules! elements {
    ($($name:ty),*) => {
        $(
            // SAFETY: a number without pointers; zero is valid.
            unsafe impl Element for $name {}
        )*
    };
}

elements!(u8, u16, u32, u64, u128, i8, i16, i32, i64, i128, f32, f64, bool);

// SAFETY: two elements.
unsafe impl<E: Element> Element for Complex<E> {}

// SAFETY: some elements.
unsafe impl<E: Element, const N: usize> Element for [E; N] {}
