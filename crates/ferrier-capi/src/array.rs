//! Arrays and workspaces.

use std::any::Any;
use std::ffi::c_void;
use std::sync::Mutex;

use ferrier::{Data, DataMut, Real};

use crate::handle::{Handle, Object, locked};
use crate::pointer::{In, Out, Source, Target};
use crate::status::{Outcome, Status, guard};

/// Memory for a plan's arrays: aligned, in huge pages where large, and shared with the other ranks of the node, so that
/// transforms need fewer copies than with other memory. On a GPU: memory of the GPU.
pub struct Array {
    start: usize,
    bytes: u64,
    owner: Mutex<Box<dyn Memory>>,
}

/// Memory of an array.
pub(crate) trait Memory: Send {
    fn upload(&mut self, from: Source<'_>) -> Outcome;
    fn download(&self, to: Target<'_>) -> Outcome;
}

impl<T: Real> Memory for ferrier::Array<T> {
    fn upload(&mut self, from: Source<'_>) -> Outcome {
        copy_in(&from, self.scalars_mut())
    }
    fn download(&self, to: Target<'_>) -> Outcome {
        copy_out(self.scalars(), to)
    }
}

/// Copies from an array of the caller's.
pub(crate) fn copy_in<E: Copy>(from: &Source<'_>, to: &mut [E]) -> Outcome {
    to.copy_from_slice(from.scalars("data", to.len())?);
    Ok(())
}

/// Copies to an array of the caller's.
pub(crate) fn copy_out<E: Copy>(from: &[E], mut to: Target<'_>) -> Outcome {
    to.scalars("data", from.len())?.copy_from_slice(from);
    Ok(())
}

impl Object for Array {
    const NAME: &'static str = "array";
    const TAG: usize = 5;
}

impl Array {
    pub(crate) fn new(start: *mut c_void, bytes: u64, owner: impl Memory + 'static) -> Array {
        Array { start: start.expose_provenance(), bytes, owner: Mutex::new(Box::new(owner)) }
    }
}

/// Memory that several plans can use in turn for their work.
pub struct Workspace(pub(crate) Mutex<Box<dyn Any + Send>>);

impl Object for Workspace {
    const NAME: &'static str = "workspace";
    const TAG: usize = 6;
}

impl Workspace {
    pub(crate) fn new(workspace: impl Send + 'static) -> Workspace {
        Workspace(Mutex::new(Box::new(workspace)))
    }
}

/// The address of the first element, in main memory or in that of the GPU; valid until the array is destroyed.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_array_data(array: Handle<Array>, data: Out<*mut c_void>) -> Status {
    guard(|| data.set("data", std::ptr::with_exposed_provenance_mut(array.get("array")?.start)))
}

/// The length in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_array_bytes(array: Handle<Array>, bytes: Out<u64>) -> Status {
    guard(|| bytes.set("bytes", array.get("array")?.bytes))
}

/// Copies from main memory to the whole array, which may be on a GPU: `bytes` bytes, at least the array's.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_array_upload(array: Handle<Array>, data: In<c_void>, bytes: u64) -> Status {
    guard(|| {
        let array = array.get("array")?;
        locked(&array.owner, "array")?.upload(Source(&data, bytes))
    })
}

/// Copies the whole array, which may be on a GPU, to main memory, after all work that was enqueued on that GPU: `bytes`
/// bytes, at least the array's.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_array_download(array: Handle<Array>, mut data: Out<c_void>, bytes: u64) -> Status {
    guard(|| {
        let array = array.get("array")?;
        locked(&array.owner, "array")?.download(Target(&mut data, bytes))
    })
}

/// Frees an array; plans must not use its memory any more. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_array_free(array: Handle<Array>) -> Status {
    guard(|| array.destroy("array"))
}

/// Frees a workspace. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_workspace_free(workspace: Handle<Workspace>) -> Status {
    guard(|| workspace.destroy("workspace"))
}

/// The workspace of a call.
pub(crate) fn workspace_of(workspace: Handle<Workspace>) -> Outcome<Option<std::sync::Arc<Workspace>>> {
    if workspace.is_null() { Ok(None) } else { workspace.get("workspace").map(Some) }
}
