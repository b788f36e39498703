// Command example runs one turn and prints it as a chat would:
//
//	go run ./example "Write a haiku about rivers into haiku.txt"
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	"alhena.dev/hosts/openase"
)

func main() {
	prompt := "Write a haiku about rivers into haiku.txt"
	if len(os.Args) > 1 {
		prompt = os.Args[1]
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := chat(ctx, prompt); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func chat(ctx context.Context, prompt string) error {
	turn, err := openase.Start(ctx, openase.Options{Prompt: prompt, Approval: "auto-edit"})
	if err != nil {
		return err
	}
	defer turn.Close()
	for {
		line, err := turn.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch line := line.(type) {
		case *openase.OutputProduced:
			fmt.Print(line.Text)
		case *openase.ToolCallRequested:
			fmt.Printf("[%s]\n", line.ToolName)
		case *openase.FileMutation:
			fmt.Printf("[%s %s]\n", line.Change, line.Path)
		case *openase.TurnCompleted:
			fmt.Println()
		case *openase.TurnFailed:
			return fmt.Errorf("%s: %s\n%s", line.Kind, line.Message, line.Hint)
		}
	}
}
