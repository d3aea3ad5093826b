package mcp

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"unsafe"
)

// safeVariables are passed to every child.
var safeVariables = []string{"APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT",
	"PROCESSOR_ARCHITECTURE", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE"}

var (
	kernel32                 = syscall.NewLazyDLL("kernel32.dll")
	createJobObject          = kernel32.NewProc("CreateJobObjectW")
	setInformationJobObject  = kernel32.NewProc("SetInformationJobObject")
	assignProcessToJobObject = kernel32.NewProc("AssignProcessToJobObject")
	terminateJobObject       = kernel32.NewProc("TerminateJobObject")
	setStdHandle             = kernel32.NewProc("SetStdHandle")
	ntResumeProcess          = syscall.NewLazyDLL("ntdll.dll").NewProc("NtResumeProcess")
)

const (
	createSuspended = 0x4
	createNoWindow  = 0x08000000
	// what adopt does with a process: terminate, set quota, suspend and resume
	processRights                     = 0x1 | 0x100 | 0x800
	jobObjectExtendedLimitInformation = 9
	jobObjectLimitKillOnJobClose      = 0x2000
)

// prepare makes cmd start without a window and suspended, so that all that it
// starts is in its job.
func prepare(cmd *exec.Cmd, attr *syscall.SysProcAttr) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if attr != nil {
		*cmd.SysProcAttr = *attr
	}
	cmd.SysProcAttr.CreationFlags |= createSuspended | createNoWindow
	if cmd.SysProcAttr.CmdLine == "" && isBatch(cmd) {
		line, err := batchCommandLine(cmd)
		cmd.SysProcAttr.CmdLine = line
		return err
	}
	return nil
}

// isBatch reports whether cmd.exe will interpret what cmd starts. The
// extension may be left to PATHEXT.
func isBatch(cmd *exec.Cmd) bool {
	path := cmd.Path
	if !filepath.IsAbs(path) {
		path = filepath.Join(cmd.Dir, path)
	}
	if full, err := exec.LookPath(path); err == nil {
		path = full
	}
	ext := strings.ToLower(filepath.Ext(strings.TrimRight(path, ". "))) // Windows ignores these at the end
	return ext == ".bat" || ext == ".cmd"
}

// batchCommandLine quotes arguments for cmd.exe, which knows other rules than
// programs do: all is quoted, and what means something within quotes is
// refused. A backslash before the closing quotation mark is doubled for the
// program that the batch file hands its arguments to.
func batchCommandLine(cmd *exec.Cmd) (string, error) {
	var line strings.Builder
	for i, arg := range append([]string{cmd.Path}, cmd.Args[min(1, len(cmd.Args)):]...) {
		if i > 0 {
			line.WriteByte(' ')
		}
		if strings.ContainsAny(arg, "\"%\r\n\x00") {
			return "", fmt.Errorf("the batch file %s cannot be given the argument %q unchanged; start the program behind it", cmd.Path, arg)
		}
		trailing := len(arg) - len(strings.TrimRight(arg, `\`))
		line.WriteString(`"` + arg + strings.Repeat(`\`, trailing) + `"`)
	}
	return line.String(), nil
}

// A processGroup is a child and what it started: a job that ends with its
// handle, and so with this process at the latest.
type processGroup struct {
	process *os.Process

	mu  sync.Mutex
	job syscall.Handle // 0 when there is none
}

// adopt puts the process into a job and lets it run.
func (g *processGroup) adopt() error {
	process, err := syscall.OpenProcess(processRights, false, uint32(g.process.Pid))
	if err != nil {
		return os.NewSyscallError("OpenProcess", err)
	}
	defer syscall.CloseHandle(process)
	job, _, err := createJobObject.Call(0, 0)
	if job == 0 {
		return os.NewSyscallError("CreateJobObject", err)
	}
	g.job = syscall.Handle(job)
	// JOBOBJECT_EXTENDED_LIMIT_INFORMATION: LimitFlags at 16, then 8 words of
	// the machine among 80 bytes of other numbers that all stay 0.
	var limits [18]uint64
	limits[2] = jobObjectLimitKillOnJobClose
	size := 80 + 8*unsafe.Sizeof(uintptr(0))
	ok, _, err := setInformationJobObject.Call(job, jobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&limits)), size)
	if ok == 0 {
		g.release()
		return os.NewSyscallError("SetInformationJobObject", err)
	}
	if ok, _, err = assignProcessToJobObject.Call(job, uintptr(process)); ok == 0 {
		g.release()
		return os.NewSyscallError("AssignProcessToJobObject", err)
	}
	if status, _, _ := ntResumeProcess.Call(uintptr(process)); int32(status) < 0 {
		g.release()
		return fmt.Errorf("NtResumeProcess: status %#x", uint32(status))
	}
	return nil
}

// terminate is all there is: no signal asks a process to end.
func (g *processGroup) terminate() { g.kill() }

func (g *processGroup) kill() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.job != 0 {
		terminateJobObject.Call(uintptr(g.job), 1)
	}
}

// alive reports whether something is left to wait for.
func (g *processGroup) alive() bool { return false }

func (g *processGroup) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.job != 0 {
		syscall.CloseHandle(g.job)
		g.job = 0
	}
}

// takeStdio duplicates the standard input and output handles for the protocol
// and replaces them, in the process and in os.Stdin and os.Stdout.
func takeStdio() (in, out *os.File, restore func(), err error) {
	oldIn, errIn := syscall.GetStdHandle(syscall.STD_INPUT_HANDLE)
	oldOut, errOut := syscall.GetStdHandle(syscall.STD_OUTPUT_HANDLE)
	stderr, errErr := syscall.GetStdHandle(syscall.STD_ERROR_HANDLE)
	if err := errors.Join(errIn, errOut, errErr); err != nil {
		return nil, nil, nil, os.NewSyscallError("GetStdHandle", err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, nil, nil, err
	}
	if in, err = duplicate(oldIn, "stdin"); err == nil {
		out, err = duplicate(oldOut, "stdout")
	}
	if err != nil {
		closeFiles(in, null)
		return nil, nil, nil, err
	}
	// Children that C code starts get the standard handles by inheritance.
	syscall.SetHandleInformation(syscall.Handle(null.Fd()), syscall.HANDLE_FLAG_INHERIT, syscall.HANDLE_FLAG_INHERIT)
	setStd(syscall.STD_INPUT_HANDLE, syscall.Handle(null.Fd()))
	setStd(syscall.STD_OUTPUT_HANDLE, stderr)
	swapBack := swapStdio(null)
	return in, out, func() {
		swapBack()
		setStd(syscall.STD_INPUT_HANDLE, oldIn)
		setStd(syscall.STD_OUTPUT_HANDLE, oldOut)
		go closeFiles(in, out, null) // waits while a Read does
	}, nil
}

func setStd(which int, h syscall.Handle) { setStdHandle.Call(uintptr(uint32(which)), uintptr(h)) }

// duplicate returns a file of its own for a handle, which children do not get.
func duplicate(h syscall.Handle, name string) (*os.File, error) {
	self, err := syscall.GetCurrentProcess()
	if err != nil {
		return nil, err
	}
	var private syscall.Handle
	if err := syscall.DuplicateHandle(self, h, self, &private, 0, false, syscall.DUPLICATE_SAME_ACCESS); err != nil {
		return nil, os.NewSyscallError("DuplicateHandle", err)
	}
	return os.NewFile(uintptr(private), name), nil
}
