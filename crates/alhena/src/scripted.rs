//! A scripted Gemini API on loopback, and cassettes of the real one.

pub use alhena_scripted::{
    After, Call, Ending, Finish, Observed, RecordedRequest, Responder, RunState, Scenario, ScenarioError,
    ScenarioState, Server, Step, StepState, Tokens, Turn, TurnState, Usage, When, cassette, tour,
};
