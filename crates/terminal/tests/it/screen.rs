//! The screen module against captures of the real CLI, against hand-made screens of other layouts, and against noise.

mod answers;
mod layouts;
mod markdown;
mod recordings;
