//go:build unix

package openase

import (
	"os/exec"
	"syscall"
)

// terminate asks alhena to stop what it started and to end.
func terminate(command *exec.Cmd) {
	_ = command.Process.Signal(syscall.SIGTERM)
}

// kill ends the program, and alhena's keeper what it started.
func kill(command *exec.Cmd) {
	_ = command.Process.Kill()
}
