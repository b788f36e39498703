//go:build !unix

package openase

import "os/exec"

// terminate can only kill here; alhena's keeper then stops what is left.
func terminate(command *exec.Cmd) { kill(command) }

func kill(command *exec.Cmd) { _ = command.Process.Kill() }
