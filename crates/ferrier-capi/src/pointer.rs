//! What C hands over besides handles.
//!
//! The types of this module are pointers in the signatures of functions. Only C can make them, and with every call it
//! promises what the header says: *a pointer that is not NULL points to as much memory as the arguments say, which
//! nothing else writes to (and, for results, nothing else uses) until the function returns*. Everything else is
//! checked here: NULL, alignment, lengths, texts.

use std::ffi::{CStr, c_char, c_void};

use crate::status::{Failure, Outcome};

/// Where a function writes a result.
#[repr(transparent)]
pub struct Out<T>(*mut T);

/// Values that a function reads.
#[repr(transparent)]
pub struct In<T>(*const T);

/// Types of which every pattern of bits is a value.
///
/// # Safety
/// As the summary says; and no padding.
pub unsafe trait Plain: Copy {}

// SAFETY: an address, through which nothing is read before it is checked.
unsafe impl Plain for *mut c_void {}
// SAFETY: as above.
unsafe impl Plain for *const c_void {}
// SAFETY: numbers.
unsafe impl Plain for i32 {}
// SAFETY: numbers.
unsafe impl Plain for u64 {}
// SAFETY: numbers.
unsafe impl Plain for f64 {}

/// A place for a result that is there.
pub(crate) struct Slot<'a, T>(&'a mut std::mem::MaybeUninit<T>);

impl<T> Slot<'_, T> {
    pub fn set(self, value: T) {
        self.0.write(value);
    }
}

impl<T> Out<T> {
    /// The place, before the work is done whose result it takes.
    pub(crate) fn slot(&mut self, name: &str) -> Outcome<Slot<'_, T>> {
        check(name, self.0, align_of::<T>())?;
        // SAFETY: not NULL and aligned; valid for writes during the call by the caller's promise (see the module).
        Ok(Slot(unsafe { &mut *self.0.cast() }))
    }

    /// Writes a result.
    pub(crate) fn set(mut self, name: &str, value: T) -> Outcome {
        self.slot(name).map(|slot| slot.set(value))
    }
}

impl<T: Plain> Out<T> {
    /// Writes as many of the values as there is room for.
    pub(crate) fn set_list(mut self, name: &str, room: u64, values: impl Iterator<Item = T>) -> Outcome {
        let mut values = values.peekable();
        let room = if values.peek().is_some() { room } else { 0 };
        self.list_mut(name, room)?.iter_mut().zip(values).for_each(|(place, value)| *place = value);
        Ok(())
    }

    /// So many values that a call changes.
    pub(crate) fn list_mut(&mut self, name: &str, length: u64) -> Outcome<&mut [T]> {
        if length == 0 {
            return Ok(&mut []);
        }
        check(name, self.0, align_of::<T>())?;
        let length = whole(name, length, size_of::<T>())?;
        // SAFETY: not NULL and aligned; so many values that nothing else uses by the caller's promise (see the module).
        Ok(unsafe { std::slice::from_raw_parts_mut(self.0, length) })
    }
}

impl Out<u64> {
    /// Writes three results.
    pub(crate) fn set_three(self, name: &str, values: [usize; 3]) -> Outcome {
        Out(self.0.cast::<[u64; 3]>()).set(name, values.map(|value| value as u64))
    }
}

impl<T: Plain> In<T> {
    /// `N` values.
    pub(crate) fn array<const N: usize>(&self, name: &str) -> Outcome<[T; N]> {
        check(name, self.0, align_of::<T>())?;
        // SAFETY: not NULL and aligned; so many values by the caller's promise (see the module), any bits are values.
        Ok(unsafe { *self.0.cast::<[T; N]>() })
    }

    /// So many values.
    pub(crate) fn list(&self, name: &str, length: u64) -> Outcome<Vec<T>> {
        if length == 0 {
            return Ok(Vec::new());
        }
        check(name, self.0, align_of::<T>())?;
        let length = whole(name, length, size_of::<T>())?;
        // SAFETY: as in `array`; the length fits in the address space.
        Ok(unsafe { std::slice::from_raw_parts(self.0, length) }.to_vec())
    }

    /// A structure that begins with its size, which may be that of an older or newer header: what it lacks is as in
    /// `default`, which also stands for NULL.
    pub(crate) fn sized(&self, name: &str, default: T) -> Outcome<T> {
        if self.0.is_null() {
            return Ok(default);
        }
        let [size] = In(self.0.cast::<u64>()).array::<1>(name)?;
        if !(8..=4096).contains(&size) || !size.is_multiple_of(8) {
            return Err(Failure::argument(
                name,
                format_args!("does not begin with its size, but with {size}"),
            ));
        }
        let mut value = default;
        let bytes = size_of::<T>().min(size as usize);
        // SAFETY: `value` is so long; the caller's structure is by its promise (see the module), any bits are values.
        unsafe { std::ptr::copy_nonoverlapping(self.0.cast::<u8>(), (&raw mut value).cast::<u8>(), bytes) };
        Ok(value)
    }
}

impl In<u64> {
    /// A shape or an index.
    pub(crate) fn three(&self, name: &str) -> Outcome<[usize; 3]> {
        Ok(self.array::<3>(name)?.map(|value| value as usize))
    }
}

impl In<*mut c_void> {
    /// Addresses of arrays of `bytes` bytes that a call writes to, which do not overlap.
    pub(crate) fn places(&self, name: &str, count: u64, bytes: u64) -> Outcome<Vec<Out<c_void>>> {
        let mut addresses = self.list(name, count)?;
        let places = addresses.iter().map(|address| Out(*address)).collect();
        addresses.sort_unstable();
        let close = addresses
            .windows(2)
            .any(|pair| (pair[1].addr() - pair[0].addr()) as u64 <= bytes.saturating_sub(1));
        match close && bytes > 0 {
            true => Err(Failure::argument(name, "overlap each other")),
            false => Ok(places),
        }
    }
}

impl In<*const c_void> {
    /// Addresses of arrays that a call reads.
    pub(crate) fn sources(&self, name: &str, count: u64) -> Outcome<Vec<In<c_void>>> {
        Ok(self.list(name, count)?.into_iter().map(In).collect())
    }
}

impl In<c_char> {
    /// A text in a structure of the caller's.
    pub(crate) fn of_field(text: *const c_char) -> In<c_char> {
        In(text)
    }

    /// A text that ends with a zero byte.
    pub(crate) fn text(&self, name: &str) -> Outcome<&str> {
        check(name, self.0, 1)?;
        // SAFETY: not NULL; ends with a zero byte and lives during the call by the caller's promise (see the module).
        let text = unsafe { CStr::from_ptr(self.0) };
        text.to_str().map_err(|error| Failure::argument(name, format_args!("is not UTF-8: {error}")))
    }

    /// A text, if there is one.
    pub(crate) fn optional_text(&self, name: &str) -> Outcome<Option<&str>> {
        if self.0.is_null() { Ok(None) } else { self.text(name).map(Some) }
    }
}

impl<T> In<T> {
    pub(crate) fn is_null(&self) -> bool {
        self.0.is_null()
    }

    pub(crate) fn addr(&self) -> usize {
        self.0.addr()
    }
}

impl In<c_void> {
    /// The address; nothing is read through it.
    pub(crate) fn address(&self) -> *const c_void {
        self.0
    }
}

impl Out<c_void> {
    /// The address; nothing is read through it.
    pub(crate) fn address(&self) -> *mut c_void {
        self.0
    }
}

/// An array of the caller's: `input` of a call.
pub(crate) struct Source<'a>(pub &'a In<c_void>, pub u64);

/// An array of the caller's that a call writes to.
pub(crate) struct Target<'a>(pub &'a mut Out<c_void>, pub u64);

impl Source<'_> {
    /// Its first `needed` scalars.
    pub fn scalars<T>(&self, name: &str, needed: usize) -> Outcome<&[T]> {
        let start = scalars::<T>(name, self.0.0, self.1, needed)?;
        if needed == 0 {
            return Ok(&[]);
        }
        // SAFETY: `scalars` has checked it; the memory is the caller's and unchanged during the call by its promise.
        Ok(unsafe { std::slice::from_raw_parts(start, needed) })
    }
}

impl Target<'_> {
    /// Its first `needed` scalars.
    pub fn scalars<T>(&mut self, name: &str, needed: usize) -> Outcome<&mut [T]> {
        let start = scalars::<T>(name, self.0.0, self.1, needed)?.cast_mut();
        if needed == 0 {
            return Ok(&mut []);
        }
        // SAFETY: `scalars` has checked it; nothing else uses the memory during the call by the caller's promise. The
        // input does not overlap it (`crate::call` checks that).
        Ok(unsafe { std::slice::from_raw_parts_mut(start, needed) })
    }
}

/// An array of the caller's that functions write to, from the one that it was handed to until one that the header names.
pub(crate) struct KeptArray<T> {
    start: *mut T,
    length: usize,
}

// SAFETY: an address of the caller's memory, which belongs to no thread.
unsafe impl<T: Send> Send for KeptArray<T> {}

impl<T> AsMut<[T]> for KeptArray<T> {
    fn as_mut(&mut self) -> &mut [T] {
        if self.length == 0 {
            return &mut [];
        }
        // SAFETY: `Target::kept` has checked it; by the caller's promise the array stays until the function that ends its
        // use, and nothing else uses it during a call.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.length) }
    }
}

impl Target<'_> {
    /// Its first `needed` scalars, also after this call.
    pub fn kept<T>(&mut self, name: &str, needed: usize) -> Outcome<KeptArray<T>> {
        Ok(KeptArray { start: scalars::<T>(name, self.0.0, self.1, needed)?.cast_mut(), length: needed })
    }
}

/// Input and output of a call must not overlap.
pub(crate) fn apart(
    (input, input_bytes): (&In<c_void>, u64),
    (output, output_bytes): (&Out<c_void>, u64),
) -> Outcome {
    let (from, to) = (input.addr() as u64, output.0.addr() as u64);
    let apart = from.saturating_add(input_bytes) <= to || to.saturating_add(output_bytes) <= from;
    match apart || input_bytes.min(output_bytes) == 0 {
        true => Ok(()),
        false => Err(Failure::argument("output", "overlaps the input; calls in place are separate calls")),
    }
}

/// The address of an array that must have `needed` scalars.
pub(crate) fn scalars<T>(name: &str, start: *const c_void, bytes: u64, needed: usize) -> Outcome<*const T> {
    let wanted = needed * size_of::<T>();
    if bytes < wanted as u64 {
        return Err(Failure::new(
            crate::status::Status::Array,
            format!("the {name} must have at least {wanted} bytes on this rank, got {bytes}"),
        ));
    }
    if needed > 0 {
        check(name, start, align_of::<T>())?;
        whole(name, bytes, 1)?;
    }
    Ok(start.cast())
}

fn check<T>(name: &str, pointer: *const T, alignment: usize) -> Outcome {
    if pointer.is_null() {
        return Err(Failure::argument(name, "is NULL"));
    }
    match pointer.addr().is_multiple_of(alignment) {
        true => Ok(()),
        false => Err(Failure::argument(
            name,
            format_args!("must be at a multiple of {alignment} bytes, got {:#x}", pointer.addr()),
        )),
    }
}

/// A number of values of a size that memory can hold.
fn whole(name: &str, length: u64, size: usize) -> Outcome<usize> {
    usize::try_from(length)
        .ok()
        .filter(|length| length.checked_mul(size).is_some_and(|bytes| isize::try_from(bytes).is_ok()))
        .ok_or_else(|| {
            Failure::argument(name, format_args!("has {length} values, more than memory can hold"))
        })
}

/// A value of an enumeration of the header.
pub(crate) fn one_of<E: Copy>(name: &str, value: i32, known: &[(i32, E)]) -> Outcome<E> {
    known.iter().find(|(number, _)| *number == value).map(|(_, meaning)| *meaning).ok_or_else(|| {
        let numbers: Vec<String> = known.iter().map(|(number, _)| number.to_string()).collect();
        Failure::argument(name, format_args!("must be one of {}, got {value}", numbers.join(", ")))
    })
}
