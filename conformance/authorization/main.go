// Command authorization is what the official conformance suite tests an
// authorization server by: ours, with one client and a user who agrees to
// everything. It serves on a loopback address and writes its issuer to standard
// error.
package main

import (
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"

	"mcpkit/mcp"
)

func main() {
	callback := flag.String("callback", "http://127.0.0.1:3000/callback", "where the client is answered")
	flag.Parse()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	issuer := "http://" + l.Addr().String()
	s := mcp.NewAuthServer(mcp.AuthServerOptions{
		Issuer: issuer, Resources: []string{issuer + "/mcp"}, Scopes: []string{"read", "write"}, Registration: true,
		Clients: []mcp.AuthClient{{
			ClientMetadata: mcp.ClientMetadata{ClientID: "conformance", ClientName: "Conformance", RedirectURIs: []string{*callback}, GrantTypes: []string{"authorization_code", "refresh_token"}},
		}},
		Consent: func(w http.ResponseWriter, r *http.Request, a *mcp.Authorization) {
			a.Approve(w, r, "somebody", a.Scopes)
		},
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	fmt.Fprintln(os.Stderr, "issuer", issuer)
	log.Fatal(http.Serve(l, s))
}
