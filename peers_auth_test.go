//go:build unix

package mcp

import (
	"bufio"
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// Real peers and OAuth: their clients at our protected server and our
// authorization server, and our client at theirs.

func TestPeersAuthGoSDK(t *testing.T) {
	p := installPeers(t)
	r := newRealm(t, registering)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, p.goes, "oauth", r.url, "whoami", "write", "whoami").CombinedOutput()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err != nil || len(lines) != 3 || !strings.HasPrefix(lines[0], "ada of c-") || lines[1] != "written" || !strings.HasSuffix(lines[2], ": read write") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestPeersAuthTypeScript(t *testing.T) {
	p := installPeers(t)
	r := newRealm(t, registering)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	script := filepath.Join(p.npm, "node_modules", "@modelcontextprotocol", "sdk", "dist", "esm", "examples", "client", "simpleOAuthClient.js")
	cmd := exec.CommandContext(ctx, "node", script, r.url)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
	}()
	page := regexp.MustCompile(`http\S+/authorize\?\S+`)
	var all strings.Builder
	opened, found, at := false, false, ""
	lines := bufio.NewReader(stdout)
	for !found {
		line, err := lines.ReadString('\n')
		all.WriteString(line)
		if err != nil {
			break
		}
		if url := page.FindString(line); url != "" {
			at = url
		}
		if strings.Contains(line, "callback server started") { // it prints the page before anybody listens
			opened = true
			if err := r.visit(ctx, at); err != nil {
				t.Error(err)
			}
		}
		if strings.Contains(line, "Interactive") || strings.Contains(line, "Commands") || strings.Contains(line, "call <tool") {
			stdin.Write([]byte("call whoami\n"))
		}
		found = strings.Contains(line, "ada of c-")
	}
	if !opened || !found {
		t.Errorf("the client said: %s", all.String())
	}
}

// Our client at the authorization server that the TypeScript SDK has as an
// example, and at the resource server beside it.
func TestPeersAuthServerTypeScript(t *testing.T) {
	p := installPeers(t)
	script := filepath.Join(p.npm, "node_modules", "@modelcontextprotocol", "sdk", "dist", "esm", "examples", "server", "simpleStreamableHttp.js")
	var at string
	at = p.serve(t, func(port string) *exec.Cmd {
		cmd := exec.Command("node", script, "--oauth", "--oauth-strict")
		cmd.Env = append(os.Environ(), "MCP_PORT="+port, "MCP_AUTH_PORT="+port[:len(port)-1]+map[bool]string{true: "1", false: "0"}[strings.HasSuffix(port, "0")])
		return cmd
	})
	at = strings.Replace(at, "127.0.0.1", "localhost", 1) + "/mcp"
	auth := &OAuth{Open: (&realm{}).visit}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cs, err := NewClient(Implementation{Name: "c", Version: "1"}, nil).Connect(ctx, &HTTP{URL: at, Auth: auth})
	if err != nil {
		t.Fatal(err)
	}
	defer cs.Close()
	var names []string
	for tool, err := range cs.Tools(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	if !slices.Contains(names, "greet") {
		t.Errorf("its tools: %v", names)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}
