package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// shutdownTime is how long requests may finish once the program is told to
// end.
const shutdownTime = 3 * time.Second

// listenHTTP listens at an address. A port without a host means this machine
// only: to be reached from elsewhere has to be asked for by name.
func listenHTTP(addr string) (net.Listener, error) {
	if !strings.Contains(addr, ":") {
		addr = ":" + addr
	}
	if host, port, err := net.SplitHostPort(addr); err == nil && host == "" {
		addr = net.JoinHostPort("127.0.0.1", port)
	}
	return net.Listen("tcp", addr)
}

// serveHTTP serves until ctx ends: then shutdown has its time, and what is
// still open is closed.
func serveHTTP(ctx context.Context, l net.Listener, handler http.Handler, shutdown func(context.Context)) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
		defer cancel()
		shutdown(late)
		if server.Shutdown(late) != nil {
			server.Close()
		}
	})
	err := server.Serve(l)
	if !stop() {
		<-done
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// announce tells people where something is served.
func announce(w io.Writer, l net.Listener, what string, paths ...string) {
	for _, path := range paths {
		fmt.Fprintf(w, "%s: http://%s%s\n", what, l.Addr(), path)
	}
	if addr, ok := l.Addr().(*net.TCPAddr); ok && !addr.IP.IsLoopback() {
		fmt.Fprintln(w, "Anyone who can reach this machine can use it.")
	}
}
