//! Asks Gemini CLI by way of the crate gemini-cli-sdk: CLI MODEL PROMPT..., all prompts by one client. Each has to be said back.

use gemini_cli_sdk::{Client, ClientConfig, Result};
use tokio_stream::StreamExt;

#[tokio::main]
async fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let (cli, model) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let prompts: Vec<String> = words.collect();
    let first = prompts.first().cloned().unwrap_or_default();
    let mut client = Client::new(ClientConfig::builder().prompt(first).cli_path(cli.into()).model(model).build())?;
    client.connect().await?;
    for prompt in &prompts {
        let mut said = String::new();
        {
            let stream = client.send(prompt).await?;
            tokio::pin!(stream);
            while let Some(message) = stream.next().await {
                said.push_str(&message?.assistant_text().unwrap_or_default());
            }
        }
        if !said.contains(prompt.as_str()) {
            eprintln!("{prompt} was answered by {said:?}");
            std::process::exit(1);
        }
    }
    client.close().await?;
    Ok(())
}
