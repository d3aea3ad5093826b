package mcp

import "syscall"

// dup2 makes to a duplicate of from. Not every Linux has the call dup2.
func dup2(from, to int) error { return syscall.Dup3(from, to, 0) }
