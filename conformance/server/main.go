// Command server is what the official conformance suite tests a server by:
// the tools, resources and prompts that its scenarios ask for, over stdio, or
// over HTTP with -http ADDR (the MCP endpoint is /mcp). It is the same server
// for every revision and every scenario.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"mcpkit/mcp"
)

func main() {
	addr := flag.String("http", "", "serve HTTP at this `address` instead of stdio")
	verbose := flag.Bool("v", false, "log to stderr")
	flag.Parse()
	log := slog.New(slog.DiscardHandler)
	if *verbose {
		log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *addr, log); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, addr string, log *slog.Logger) error {
	s := newServer(log)
	if addr == "" {
		return s.Run(ctx, mcp.Stdio())
	}
	handler := mcp.NewHTTPHandler(s, &mcp.HTTPOptions{Logger: log})
	mux := http.NewServeMux()
	mux.Handle("/mcp", handler)
	mux.Handle("/sse", handler.SSE())
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "http://%s/mcp\n", l.Addr())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() {
		late, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		handler.Shutdown(late)
		server.Shutdown(late)
	})
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func newServer(log *slog.Logger) *mcp.Server {
	s := mcp.NewServer(mcp.Implementation{Name: "mcpkit-conformance", Version: "1.0.0"}, &mcp.ServerOptions{
		Logger: log,
		Capabilities: &mcp.ServerCapabilities{
			Tools:       &mcp.ListCapability{ListChanged: true},
			Prompts:     &mcp.ListCapability{ListChanged: true},
			Resources:   &mcp.ResourcesCapability{ListChanged: true, Subscribe: true},
			Completions: &struct{}{},
			Logging:     &struct{}{},
			Extensions:  map[string]json.RawMessage{skillsExtension: json.RawMessage(`{"directoryRead":true}`)},
		},
		Complete: func(_ context.Context, _ *mcp.Request, p *mcp.CompleteParams) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.Completion{Values: []string{p.Argument.Value + "-1", p.Argument.Value + "-2"}}}, nil
		},
	})
	addTools(s)
	addAskingTools(s)
	addRounds(s)
	addResources(s)
	addPrompts(s)
	addSkills(s)
	return s
}
