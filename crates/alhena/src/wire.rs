//! The formats that Gemini CLI writes, field by field.

pub use alhena_wire::exit;
pub use alhena_wire::frame::{Frame, Framer};
pub use alhena_wire::release::{self, NotAVersion, Version};
pub use alhena_wire::report;
pub use alhena_wire::session;
pub use alhena_wire::stream::{self, LineError, StreamEvent, parse_line};
pub use alhena_wire::{Count, Named, Raw};
