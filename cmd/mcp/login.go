package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"mcpkit/mcp"
)

// tokensFile is where tokens and registrations are kept.
func tokensFile() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "mcpkit", "tokens.json"), nil
}

// login returns what gets tokens when the server asks for them: the user opens
// the page that is printed. A header that was given comes first.
func (t *target) login(log io.Writer) mcp.Authorizer {
	if t.header.Get("Authorization") != "" {
		return nil
	}
	auth := &mcp.OAuth{ClientName: "mcp, the command", Logger: warnings(log), Open: func(_ context.Context, page string) error {
		_, err := fmt.Fprintf(log, "The server asks who you are. Open this page and come back:\n  %s\n", page)
		return err
	}}
	if path, err := tokensFile(); err == nil {
		auth.Tokens = mcp.FileTokens(path)
	}
	return auth
}

// logout forgets the token for a server, or all there is.
func logout(ctx context.Context, args []string, stdout io.Writer) error {
	path, err := tokensFile()
	switch {
	case err != nil:
		return err
	case len(args) > 1 || len(args) == 1 && !isURL(args[0]):
		return &usageError{"logout takes the URL of a server, or nothing for all"}
	case len(args) == 1:
		if err := (&mcp.OAuth{Tokens: mcp.FileTokens(path)}).Forget(ctx, args[0]); err != nil {
			return err
		}
		_, err = fmt.Fprintln(stdout, "The token is forgotten here. The authorization server may still take it.")
		return err
	}
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	_, err = fmt.Fprintln(stdout, "All tokens are forgotten here. The authorization servers may still take them.")
	return err
}

// demoAuth serves the demo to those with a token, and what gives tokens: all
// three parties of OAuth, with anybody who opens the page as the user.
func demoAuth(ctx context.Context, addr string, s *mcp.Server, logger *slog.Logger, stderr io.Writer) error {
	l, err := listenHTTP(addr)
	if err != nil {
		return err
	}
	if a, ok := l.Addr().(*net.TCPAddr); !ok || !a.IP.IsLoopback() {
		l.Close()
		return &usageError{"demo: --auth is for this machine only: other addresses need TLS"}
	}
	issuer := "http://" + l.Addr().String()
	handler, shutdown := protectedDemo(issuer, s, logger)
	announce(stderr, l, "MCP, with a token", "/mcp")
	return serveHTTP(ctx, l, handler, func(ctx context.Context) { shutdown(ctx) })
}

func protectedDemo(issuer string, s *mcp.Server, logger *slog.Logger) (_ http.Handler, shutdown func(context.Context) error) {
	s.RemoveTools("die")
	resource := issuer + "/mcp"
	as := mcp.NewAuthServer(mcp.AuthServerOptions{
		Issuer: issuer, Resources: []string{resource}, Scopes: []string{"demo"}, Registration: true, Logger: logger,
		Consent: mcp.ConsentPage(func(http.ResponseWriter, *http.Request) (string, bool) { return "whoever has this page", true }),
	})
	h := mcp.NewHTTPHandler(s, &mcp.HTTPOptions{Logger: logger})
	metadata := mcp.ResourceMetadataHandler(mcp.ResourceMetadata{Resource: resource, AuthorizationServers: []string{issuer}, ScopesSupported: []string{"demo"}, ResourceName: "Demo"})
	mux := http.NewServeMux()
	mux.Handle("/mcp", mcp.RequireBearer(mcp.BearerOptions{Resource: resource, Verify: as.Verify, Scopes: []string{"demo"}, Logger: logger})(h))
	mux.Handle("/.well-known/oauth-protected-resource", metadata)
	mux.Handle("/.well-known/oauth-protected-resource/", metadata)
	mux.Handle("/", as)
	return mux, h.Shutdown
}
