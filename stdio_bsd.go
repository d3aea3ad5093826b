//go:build unix && !linux && !solaris

package mcp

import "syscall"

// dup2 makes to a duplicate of from.
func dup2(from, to int) error { return syscall.Dup2(from, to) }
