package main

import (
	"context"
	"crypto"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"log/slog"
	"net/http"
	"os"

	"mcpkit/mcp"
)

// authorization returns what gets tokens in the scenarios of OAuth: with what
// the suite hands over, and a user who agrees to everything.
func authorization(log *slog.Logger) (*mcp.OAuth, error) {
	var given struct {
		ClientID         string `json:"client_id"`
		ClientSecret     string `json:"client_secret"`
		Issuer           string `json:"issuer"`
		PrivateKey       string `json:"private_key_pem"`
		IDPClientID      string `json:"idp_client_id"`
		IDPIDToken       string `json:"idp_id_token"`
		IDPTokenEndpoint string `json:"idp_token_endpoint"`
		WorkloadJWT      string `json:"valid_jwt"`
	}
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), &given); err != nil {
			return nil, err
		}
	}
	auth := &mcp.OAuth{
		ClientID: given.ClientID, ClientSecret: given.ClientSecret, Issuer: given.Issuer, Logger: log,
		ClientName: "mcpkit-conformance", ClientMetadataURL: "https://conformance-test.local/client-metadata.json",
		Open: visit,
	}
	switch os.Getenv("MCP_CONFORMANCE_SCENARIO") {
	case "auth/client-credentials-jwt":
		block, _ := pem.Decode([]byte(given.PrivateKey))
		if block == nil {
			return nil, errors.New("the private key is no PEM")
		}
		key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		if err != nil {
			return nil, err
		}
		auth.ClientKey, _ = key.(crypto.Signer)
		auth.Grant = mcp.ClientCredentials()
	case "auth/client-credentials-basic":
		auth.Grant = mcp.ClientCredentials()
	case "auth/enterprise-managed-authorization":
		auth.Grant = mcp.EnterpriseManaged(mcp.EnterpriseOptions{
			TokenEndpoint: given.IDPTokenEndpoint, ClientID: given.IDPClientID,
			IDToken: func(context.Context) (string, error) { return given.IDPIDToken, nil },
		})
	case "auth/wif-jwt-bearer":
		auth.Grant = mcp.WorkloadIdentity(func(context.Context, string) (string, error) { return given.WorkloadJWT, nil })
	}
	return auth, nil
}

// visit is a browser: it goes where it is sent.
func visit(ctx context.Context, page string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	return response.Body.Close()
}
