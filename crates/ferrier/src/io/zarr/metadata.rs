//! The file `zarr.json` of arrays and groups.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::super::dtype::{Dtype, SUPPORTED};
use super::super::failure::io_text;
use super::super::options::Compression;

/// The name of the file.
pub const FILE: &str = "zarr.json";

/// What a folder is.
pub enum Node {
    /// An array, with its metadata.
    Array(Value),
    /// A group.
    Group,
    /// Nothing of Zarr.
    None,
}

/// Reads what a folder is.
///
/// # Errors
/// Metadata that is not Zarr's.
pub fn node(folder: &Path) -> Result<Node, String> {
    let text = match fs::read(folder.join(FILE)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Node::None),
        Err(error) => return Err(io_text(&error)),
        Ok(text) => text,
    };
    let value: Value =
        serde_json::from_slice(&text).map_err(|error| format!("its {FILE} is damaged: {error}"))?;
    match (value["zarr_format"].as_u64(), value["node_type"].as_str()) {
        (Some(3), Some("array")) => Ok(Node::Array(value)),
        (Some(3), Some("group")) => Ok(Node::Group),
        (Some(format), _) if format != 3 => Err(format!("its format is Zarr {format}; Zarr 3 is supported")),
        _ => Err(format!("its {FILE} is neither that of an array nor that of a group")),
    }
}

/// The arrays in a group, for messages.
pub fn arrays(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_array = |entry: &fs::DirEntry| matches!(node(&entry.path()), Ok(Node::Array(_)));
    let mut names: Vec<_> =
        entries.filter(is_array).map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The shape and the element type of an array.
///
/// # Errors
/// Another element type than those supported; a shape that is none or too large.
pub fn shape_and_type(metadata: &Value) -> Result<(Vec<usize>, Dtype), String> {
    let name = match &metadata["data_type"] {
        Value::String(name) => name.clone(),
        other => other["name"].as_str().map_or_else(|| other.to_string(), str::to_string),
    };
    let dtype = Dtype::named(&name)
        .ok_or_else(|| format!("its elements are of type '{name}'; supported are {SUPPORTED}"))?;
    let lengths =
        metadata["shape"].as_array().map(|list| list.iter().map(Value::as_u64).collect::<Option<Vec<_>>>());
    let Some(Some(lengths)) = lengths else { return Err(format!("its {FILE} is damaged: no shape")) };
    let bytes = lengths.iter().try_fold(dtype.bytes() as u64, |product, &n| product.checked_mul(n));
    if bytes.is_none_or(|bytes| bytes > i64::MAX as u64) {
        return Err(format!("shape {lengths:?} is too large: its size overflows"));
    }
    Ok((lengths.iter().map(|&n| n as usize).collect(), dtype))
}

/// Metadata of a group.
pub fn group() -> Value {
    json!({"zarr_format": 3, "node_type": "group", "attributes": {}})
}

/// Metadata of an array whose missing chunks are zero.
pub fn array(
    shape: &[usize],
    dtype: Dtype,
    chunks: &[usize],
    shards: Option<&[usize]>,
    compress: Compression,
) -> Value {
    let bytes = json!({"name": "bytes", "configuration": {"endian": "little"}});
    let mut codecs = vec![bytes.clone()];
    match compress {
        Compression::None => {}
        Compression::Zstd(level) => {
            codecs.push(json!({"name": "zstd", "configuration": {"level": level, "checksum": false}}));
        }
        Compression::Blosc(level) => codecs.push(json!({"name": "blosc", "configuration": {
            "cname": "zstd", "clevel": level, "shuffle": "shuffle", "blocksize": 0,
            "typesize": dtype.bytes() / dtype.width()}})),
        Compression::Gzip(level) => codecs.push(json!({"name": "gzip", "configuration": {"level": level}})),
    }
    if shards.is_some() {
        let index = [bytes, json!({"name": "crc32c"})];
        codecs = vec![json!({"name": "sharding_indexed", "configuration": {
            "chunk_shape": chunks, "codecs": codecs, "index_codecs": index, "index_location": "end"}})];
    }
    let fill = if dtype.is_complex() { json!([0.0, 0.0]) } else { json!(0.0) };
    json!({
        "zarr_format": 3,
        "node_type": "array",
        "shape": shape,
        "data_type": dtype.name(),
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": shards.unwrap_or(chunks)}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": fill,
        "codecs": codecs,
        "attributes": {},
    })
}
