//! The hosts' adapters in their own languages, on the real CLI and the scripted API.

mod agent_cli_sdk;
mod aiwf;
mod cao;
mod claude_sdk;
mod detected;
mod dropin;
mod github_action;
mod openase;
mod place;
mod promptfoo;
mod python;
mod readmes;
