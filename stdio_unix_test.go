//go:build unix

package mcp

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// watchProcess returns a function that reports whether a process has ended. A
// zombie has: reaping it is up to whoever adopted it.
func watchProcess(t *testing.T, pid int) (gone func() bool) {
	return func() bool {
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return true
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return false
		}
		_, state, _ := strings.Cut(string(stat), ") ")
		return strings.HasPrefix(state, "Z")
	}
}

var _ = addMode("stray descriptors", func() {
	early := os.Stdout // kept from before the connection
	serveStray(func() {
		fmt.Fprintln(early, "stray early")
		syscall.Write(1, []byte("stray descriptor\n"))
		pid, err := syscall.ForkExec("/bin/sh", []string{"sh", "-c", "echo stray shell; wc -c"},
			&syscall.ProcAttr{Files: []uintptr{0, 1, 2}})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return
		}
		for err = syscall.EINTR; err == syscall.EINTR; {
			_, err = syscall.Wait4(pid, nil, 0, nil)
		}
		n, err := syscall.Read(0, make([]byte, 1))
		fmt.Println("stray descriptor read", n, err)
	})
})

// The same below Go: descriptors 0 and 1 are what C code and children use.
func TestStdioStrayDescriptors(t *testing.T) {
	shows(t, "stdio.stdout.clean")
	checkStray(t, "stray descriptors", "stray early", "stray descriptor\n", "stray shell", "stray descriptor read 0 <nil>")
}

// A server that ignores everything gets end of file, SIGTERM and SIGKILL, in
// this order and with time between.
func TestCommandCloseOrder(t *testing.T) {
	shows(t, "stdio.shutdown.order")
	const grace = 300 * time.Millisecond
	var lines lineLog
	ch := startChild(t, &Command{Cmd: childCommand("stubborn"), Grace: grace, Stderr: lines.add})
	helloChild(t, ch)
	begin := time.Now()
	if err := closeInTime(t, ch, testPatience); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took < 2*grace {
		t.Errorf("killed after %v", took)
	}
	if got := lines.all(); !slices.Equal(got, []string{"eof", "term"}) {
		t.Errorf("the server saw %q", got)
	}
	if status := ch.cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGKILL {
		t.Errorf("ended by %v", status.Signal())
	}
}

// One that ignores end of file dies of SIGTERM and needs no SIGKILL.
func TestCommandCloseTerminates(t *testing.T) {
	shows(t, "stdio.shutdown.order")
	ch := startChild(t, &Command{Cmd: childCommand("ignores eof"), Grace: 500 * time.Millisecond})
	helloChild(t, ch)
	if err := closeInTime(t, ch, testPatience); err != nil {
		t.Error(err)
	}
	if status := ch.cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGTERM {
		t.Errorf("ended by %v", status.Signal())
	}
	if gone := watchProcess(t, ch.cmd.Process.Pid); !gone() {
		t.Error("not reaped")
	}
}

// Wrappers that do not pass the end on, and what they started.
func TestCommandShellWrappers(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, script string
		grace        time.Duration
	}{
		{"in the background", "sleep 600 & echo $!; exec cat", 2 * time.Second},
		{"deaf", "sleep 600 & echo $!; wait", 300 * time.Millisecond},
		{"deaf to all", "trap '' TERM; sleep 600 & echo $!; wait; wait", 300 * time.Millisecond},
		{"replaced", "echo $$; exec sleep 600", 300 * time.Millisecond},
		{"ended before", "sleep 600 & echo $!; exit 5", 300 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			ch := startChild(t, &Command{Cmd: exec.Command(shell, "-c", c.script), Grace: c.grace})
			pid, err := strconv.Atoi(readLineFrom(t, ch))
			if err != nil {
				t.Fatal(err)
			}
			gone := watchProcess(t, pid)
			limit := 3*c.grace + 3*time.Second
			if err := closeInTime(t, ch, limit); err != nil && c.name != "ended before" {
				t.Error(err)
			}
			waitUntil(t, "the sleep is gone", gone)
		})
	}
}

// escape leaves a process behind that has left the group and holds the pipes.
func escape() {
	self := childCommand("deaf")
	self.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	self.Stdin, self.Stdout, self.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := self.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	childPrint(self.Process.Pid)
}

var (
	_ = addMode("escape and stay", func() { escape(); childEcho() })
	_ = addMode("escape and fail", func() { escape(); os.Exit(5) })
)

// A process that is out of reach delays nothing for long.
func TestCommandEscapedGrandchild(t *testing.T) {
	for _, mode := range []string{"escape and stay", "escape and fail"} {
		ch := startChild(t, &Command{Cmd: childCommand(mode), Grace: time.Second})
		pid, err := strconv.Atoi(readLineFrom(t, ch))
		if err != nil {
			t.Fatal(err)
		}
		failed := mode == "escape and fail"
		if failed {
			if _, err := readInTime(t, ch); err == nil || !strings.Contains(err.Error(), "exit status 5") {
				t.Errorf("%s: Read: %v", mode, err)
			}
		}
		if err := closeInTime(t, ch, testPatience); failed == (err == nil) {
			t.Errorf("%s: Close: %v", mode, err)
		}
		if watchProcess(t, pid)() {
			t.Errorf("%s: the process was within reach", mode)
		}
		syscall.Kill(pid, syscall.SIGKILL)
	}
}

// A child that leads a session of its own leads a group too.
func TestCommandSetsid(t *testing.T) {
	cmd := childCommand("tree")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	ch := startChild(t, &Command{Cmd: cmd, Grace: 300 * time.Millisecond})
	readLineFrom(t, ch)
	if err := closeInTime(t, ch, testPatience); err != nil {
		t.Error(err)
	}
	if cmd.SysProcAttr.Setpgid {
		t.Error("the caller's attributes changed")
	}
}
