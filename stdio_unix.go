//go:build unix && !solaris

package mcp

import (
	"os"
	"os/exec"
	"syscall"
)

// safeVariables are passed to every child.
var safeVariables = []string{"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"}

// prepare makes cmd lead a process group of its own.
func prepare(cmd *exec.Cmd, attr *syscall.SysProcAttr) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if attr != nil {
		*cmd.SysProcAttr = *attr
	}
	if !cmd.SysProcAttr.Setsid { // the leader of a session leads a group too
		cmd.SysProcAttr.Setpgid, cmd.SysProcAttr.Pgid = true, 0
	}
	return nil
}

// A processGroup is a child and what it started.
type processGroup struct{ process *os.Process }

func (g *processGroup) adopt() error { return nil }

func (g *processGroup) terminate() { syscall.Kill(-g.process.Pid, syscall.SIGTERM) }

func (g *processGroup) kill() { syscall.Kill(-g.process.Pid, syscall.SIGKILL) }

// alive reports whether the group has a member.
func (g *processGroup) alive() bool { return syscall.Kill(-g.process.Pid, 0) == nil }

func (g *processGroup) release() {}

// takeStdio moves the descriptors 0 and 1 to private ones. Then 0 is the null
// device and 1 is standard error; the variables os.Stdin and os.Stdout need no
// change.
func takeStdio() (in, out *os.File, restore func(), err error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, nil, nil, err
	}
	defer null.Close()
	inFD, err := dupPrivate(0)
	if err != nil {
		return nil, nil, nil, err
	}
	outFD, err := dupPrivate(1)
	if err != nil {
		syscall.Close(inFD)
		return nil, nil, nil, err
	}
	in, out = os.NewFile(uintptr(inFD), "stdin"), os.NewFile(uintptr(outFD), "stdout")
	restore = func() {
		dup2(inFD, 0)
		dup2(outFD, 1)
		closeFiles(in, out)
	}
	if err = dup2(int(null.Fd()), 0); err == nil {
		err = dup2(2, 1)
	}
	if err != nil {
		restore()
		return nil, nil, nil, err
	}
	return in, out, restore, nil
}

// dupPrivate duplicates a descriptor so that children do not get it.
func dupPrivate(fd int) (int, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	private, err := syscall.Dup(fd)
	if err == nil {
		syscall.CloseOnExec(private)
	}
	return private, err
}
