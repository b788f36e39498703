//go:build unix

package openase

import (
	"os/exec"
	"syscall"
)

// ownGroup makes the program the first of a group, which can be killed with all that it started.
func ownGroup(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

// terminate asks alhena to stop what it started and to end.
func terminate(command *exec.Cmd) {
	_ = command.Process.Signal(syscall.SIGTERM)
}

// kill ends the program, and alhena's keeper what it started.
func kill(command *exec.Cmd) {
	_ = command.Process.Kill()
}

// killGroup ends the program and its group.
func killGroup(command *exec.Cmd) {
	_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
	kill(command)
}
