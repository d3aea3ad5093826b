package mcp

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// watchProcess returns a function that reports whether a process has ended.
func watchProcess(t *testing.T, pid int) (gone func() bool) {
	h, err := syscall.OpenProcess(syscall.SYNCHRONIZE, false, uint32(pid))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.CloseHandle(h) })
	return func() bool {
		event, err := syscall.WaitForSingleObject(h, 0)
		return err == nil && event == syscall.WAIT_OBJECT_0
	}
}

var getProcessHandleCount = kernel32.NewProc("GetProcessHandleCount")

// openHandles counts the handles of this process.
func openHandles(t *testing.T) int {
	self, err := syscall.GetCurrentProcess()
	if err != nil {
		t.Fatal(err)
	}
	var n uint32
	if ok, _, err := getProcessHandleCount.Call(uintptr(self), uintptr(unsafe.Pointer(&n))); ok == 0 {
		t.Fatal(err)
	}
	return int(n)
}

var _ = addMode("stray handles", func() {
	serveStray(func() {
		out, _ := syscall.GetStdHandle(syscall.STD_OUTPUT_HANDLE)
		syscall.Write(out, []byte("stray handle\n"))
		in, _ := syscall.GetStdHandle(syscall.STD_INPUT_HANDLE)
		n, err := syscall.Read(in, make([]byte, 1))
		fmt.Println("stray handle read", n, err)
	})
})

// The same below Go: the standard handles are what children inherit.
func TestStdioStrayHandles(t *testing.T) {
	shows(t, "stdio.stdout.clean")
	checkStray(t, "stray handles", "stray handle\n", "stray handle read 0")
}

// Closed connections leave no handle behind.
func TestCommandHandles(t *testing.T) {
	c := &Command{Cmd: childCommand("echo")}
	helloChild(t, startChild(t, c)) // what the runtime makes once
	before := openHandles(t)
	for range 20 { // more than the runtime may need for threads
		conn, err := c.Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		helloChild(t, conn)
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
	waitUntil(t, "as many handles as before", func() bool { return openHandles(t) < before+20 })
}

// writeShim makes a shim that hands its arguments to this binary.
func writeShim(t *testing.T, name string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "mcp shim") // with a space
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte("@\""+self+"\" %*\r\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		os.Remove(path)
		os.Remove(dir)
	})
	return path
}

// Shims such as npx.cmd get their arguments unchanged, or are not started.
func TestCommandBatchFile(t *testing.T) {
	shim := writeShim(t, "shim.cmd")
	args := []string{"plain", "two words", "a&b", "x|y", "(p)", "<in>", "a^b", `C:\dir\`, "", "é", "it's"}
	cmd := exec.Command(strings.TrimSuffix(shim, ".cmd"), args...) // found by PATHEXT
	cmd.Env = []string{childMode + "=args"}
	ch := startChild(t, &Command{Cmd: cmd, Grace: 300 * time.Millisecond})
	var got []string
	if err := json.Unmarshal([]byte(readLineFrom(t, ch)), &got); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, args) {
		t.Errorf("got  %q\nwant %q", got, args)
	}
	helloChild(t, ch)
	if err := closeInTime(t, ch, testPatience); err != nil {
		t.Error(err)
	}
	for _, arg := range []string{"%PATH%", `say "x"`, "two\nlines"} {
		for _, name := range []string{"shim.cmd", "shim.CMD", "shim.bat", "shim.cmd. ."} {
			cmd := exec.Command(shim, arg)
			cmd.Path = filepath.Join(filepath.Dir(shim), name)
			if conn, err := (&Command{Cmd: cmd}).Connect(t.Context()); err == nil {
				conn.Close()
				t.Errorf("%s was started with %q", name, arg)
			}
		}
	}
}

// Programs that are no batch files take any argument.
func TestCommandArguments(t *testing.T) {
	args := []string{"two words", `say "x"`, "%PATH%", "a&b", `C:\dir\`, `\"`, ""}
	ch := startChild(t, &Command{Cmd: childCommand("args", args...)})
	var got []string
	if err := json.Unmarshal([]byte(readLineFrom(t, ch)), &got); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, args) {
		t.Errorf("got %q", got)
	}
}
