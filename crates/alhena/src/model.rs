//! The data of a run: its options, events, messages and outcome, and the interpreter that turns input into them.

pub use alhena_model::join;
pub use alhena_model::message;
pub use alhena_model::options;
pub use alhena_model::tool;
pub use alhena_model::{
    Answered, CallUsage, Change, Class, CommandRun, Conversation, Cost, Decided, DiskFact, End, Entry, Exit,
    FileChange, FileRecord, Include, Input, Interpreter, Malformed, PermissionRequest, Price, Prices,
    Prompted, Prompts, Rates, Reported, Resolution, Setting, SettingError, Source, SpendingLimits,
    Statistics, Stop, Thought, Timestamp, Tokens, Tool, ToolEnd, ToolError, ToolRun, Usage, Witnesses,
};
