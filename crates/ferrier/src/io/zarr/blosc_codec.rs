//! Codec `blosc` of Zarr stores.

use std::borrow::Cow;
use std::sync::{Arc, Once};

use zarrs::array::codec::api::{
    BytesToBytesCodecTraits, Codec, CodecError, CodecMetadataOptions, CodecOptions, CodecRuntimePluginV3,
    CodecTraits, PartialDecoderCapability, PartialEncoderCapability, RecommendedConcurrency,
    register_codec_v3,
};
use zarrs::array::{ArrayBytesRaw, BytesRepresentation};
use zarrs::metadata::Configuration;
use zarrs::metadata::v3::MetadataV3;
use zarrs::plugin::{PluginCreateError, ZarrVersion};

use super::blosc;

#[derive(Clone, Debug)]
struct BloscCodec {
    configuration: Configuration,
    level: u8,
    element: usize,
}

zarrs::plugin::impl_extension_aliases!(BloscCodec, v3: "blosc");

/// Makes the codec known to the crate that reads and writes stores.
pub fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let plugin = CodecRuntimePluginV3::new(|name| name == "blosc", create);
        register_codec_v3(plugin);
    });
}

fn create(metadata: &MetadataV3) -> Result<Codec, PluginCreateError> {
    let configuration = metadata.configuration().cloned().unwrap_or_default();
    let number = |key: &str| configuration.get(key).and_then(|value| value.as_u64());
    let level = number("clevel").unwrap_or(5).min(9) as u8;
    let element = number("typesize").unwrap_or(1) as usize;
    Ok(Codec::BytesToBytes(Arc::new(BloscCodec { configuration, level, element })))
}

impl CodecTraits for BloscCodec {
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }

    fn configuration(&self, _: ZarrVersion, _: &CodecMetadataOptions) -> Option<Configuration> {
        Some(self.configuration.clone())
    }

    fn partial_decoder_capability(&self) -> PartialDecoderCapability {
        PartialDecoderCapability { partial_read: false, partial_decode: false }
    }

    fn partial_encoder_capability(&self) -> PartialEncoderCapability {
        PartialEncoderCapability { partial_encode: false }
    }
}

impl BytesToBytesCodecTraits for BloscCodec {
    fn into_dyn(self: Arc<Self>) -> Arc<dyn BytesToBytesCodecTraits> {
        self
    }

    fn recommended_concurrency(&self, _: &BytesRepresentation) -> Result<RecommendedConcurrency, CodecError> {
        Ok(RecommendedConcurrency::new_maximum(1))
    }

    fn encode<'a>(
        &self,
        plain: ArrayBytesRaw<'a>,
        _: &CodecOptions,
    ) -> Result<ArrayBytesRaw<'a>, CodecError> {
        blosc::encode(&plain, self.element, self.level).map(Cow::Owned).map_err(CodecError::Other)
    }

    fn decode<'a>(
        &self,
        coded: ArrayBytesRaw<'a>,
        plain: &BytesRepresentation,
        _: &CodecOptions,
    ) -> Result<ArrayBytesRaw<'a>, CodecError> {
        let bytes = match plain.size() {
            Some(bytes) => bytes as usize,
            None => return Err(CodecError::Other("blosc data of unknown length".into())),
        };
        blosc::decode(&coded, bytes).map(Cow::Owned).map_err(CodecError::Other)
    }

    fn encoded_representation(&self, plain: &BytesRepresentation) -> BytesRepresentation {
        let bound = |bytes| BytesRepresentation::BoundedSize(bytes + blosc::OVERHEAD as u64);
        plain.size().map_or(BytesRepresentation::UnboundedSize, bound)
    }
}
