//go:build (!unix && !windows) || solaris

package mcp

import (
	"os"
	"os/exec"
	"syscall"
)

// safeVariables are passed to every child.
var safeVariables = []string{"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "home", "path", "user"}

func prepare(cmd *exec.Cmd, attr *syscall.SysProcAttr) error {
	cmd.SysProcAttr = attr
	return nil
}

// A processGroup is a child; what the child started is out of reach here.
type processGroup struct{ process *os.Process }

func (g *processGroup) adopt() error { return nil }

// There is no gentle way that every one of these systems has.
func (g *processGroup) terminate() { g.process.Kill() }

func (g *processGroup) kill() { g.process.Kill() }

func (g *processGroup) alive() bool { return false }

func (g *processGroup) release() {}

// takeStdio covers the variables os.Stdin and os.Stdout. Where there is no
// null device, os.Stdin becomes nil, and reading from it is os.ErrInvalid.
func takeStdio() (in, out *os.File, restore func(), err error) {
	in, out = os.Stdin, os.Stdout
	null, _ := os.Open(os.DevNull)
	swapBack := swapStdio(null)
	return in, out, func() {
		swapBack()
		null.Close()
	}, nil
}
