//go:build !mcp_nohttp

package mcp

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestFault58ReadingChallenges(t *testing.T) {
	shows(t, "auth.prm.parse-401", "auth.prm.client-header")
	for _, c := range []struct {
		values []string
		want   string // scheme|name=value…; nothing for none
	}{
		{[]string{`Bearer resource_metadata="https://r/.x"`}, `bearer|resource_metadata=https://r/.x`},
		{[]string{`bearer Resource_Metadata = "https://r/.x"`}, `bearer|resource_metadata=https://r/.x`},
		{[]string{`BEARER scope=read,error=invalid_token`}, `bearer|error=invalid_token|scope=read`},
		{[]string{`Bearer error_description="say \"hi\", \\ Bearer x=y",scope="a b"`}, `bearer|error_description=say "hi", \ Bearer x=y|scope=a b`},
		{[]string{`Basic realm="a, Bearer b", Bearer scope="a b", resource_metadata="https://r"`}, `basic|realm=a, Bearer b;bearer|resource_metadata=https://r|scope=a b`},
		{[]string{`Basic realm="a, Bearer b"`, `Bearer scope="a b"`}, `basic|realm=a, Bearer b;bearer|scope=a b`},
		{[]string{`Bearer error_description="resource_metadata=\"http://evil\""`}, `bearer|error_description=resource_metadata="http://evil"`},
		{[]string{`Bearer scope="a", scope="b", error="x"`}, `bearer|error=x|scope=`},
		{[]string{`Bearer scope="a`}, ``},
		{[]string{`Basic realm="x", Bearer scope="a`}, `basic|realm=x`},
		{[]string{`Negotiate, Bearer scope=a`}, `negotiate;bearer|scope=a`},
		{[]string{`Negotiate YWJj==, DPoP algs="ES256"`}, `negotiate;dpop|algs=ES256`},
		{[]string{`,, Bearer ,, scope="a" , `}, `bearer|scope=a`},
		{[]string{`Bearer`}, `bearer`},
		{[]string{``, ` `, `=`, `"x"`, `é`}, ``},
		{[]string{`Bearer scope=`}, `bearer`}, // which is a token68
	} {
		var got []string
		for _, ch := range parseChallenges(c.values) {
			text := ch.scheme
			for _, name := range []string{"algs", "error", "error_description", "realm", "resource_metadata", "scope"} {
				if v, ok := ch.params[name]; ok {
					text += "|" + name + "=" + v
				}
			}
			got = append(got, text)
		}
		if text := strings.Join(got, ";"); text != c.want {
			t.Errorf("%q:\n got %s\nwant %s", c.values, text, c.want)
		}
	}
}

func FuzzChallenges(f *testing.F) {
	f.Add(`Bearer error="invalid_token", scope="a b"`, `Basic YQ==`)
	f.Add(`Bearer x="\`, `,=,"`)
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, c := range parseChallenges([]string{a, b}) {
			if c.scheme == "" || c.scheme != strings.ToLower(c.scheme) || c.params == nil {
				t.Errorf("%q %q: %+v", a, b, c)
			}
		}
	})
}

func b64(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

// Tokens that attack a verifier.
func TestAuthTokensThatAreForged(t *testing.T) {
	shows(t, "auth.token.validate", "auth.token.invalid-401", "ext.auth.dpop.asymmetric")
	key, other := newKey(t), newKey(t)
	rsaKey, _ := rsa.GenerateKey(rand.Reader, 2048)
	fetched := 0
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fetched++; w.Write(keySetOf(t, other)) }))
	defer evil.Close()
	keys := keySetOf(t, key, rsaKey)
	jwks := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write(keys) }))
	defer jwks.Close()
	verify := JWTVerifier(JWTOptions{Issuer: "https://as.example", JWKSURL: jwks.URL})
	own, _ := webKeyOf(key.Public())
	foreign, _ := webKeyOf(other.Public())
	rsaOwn, _ := webKeyOf(rsaKey.Public())
	good := func() jwtClaims {
		return jwtClaims{Iss: "https://as.example", Sub: "ada", Aud: stringOrSet{"https://rs.example"}, Exp: nowPlus(60), Iat: nowPlus(0), Scope: "a b"}
	}
	sign := func(k any, header map[string]any, claims any) string {
		var token string
		var err error
		switch k := k.(type) {
		case *ecdsa.PrivateKey:
			token, err = signJWT(k, header, claims)
		case *rsa.PrivateKey:
			token, err = signJWT(k, header, claims)
		}
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	with := func(change func(*jwtClaims)) jwtClaims { c := good(); change(&c); return c }
	head := func(kid string) map[string]any { return map[string]any{"typ": "at+jwt", "kid": kid} }
	valid := sign(key, head(own.Kid), good())
	parts := strings.Split(valid, ".")
	hmacWith := func(secret []byte) string {
		signed := b64(`{"alg":"HS256","typ":"at+jwt","kid":"`+own.Kid+`"}`) + "." + parts[1]
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(signed))
		return signed + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
	}
	raw, _ := base64.RawURLEncoding.DecodeString(parts[2])
	der, _ := asn1.Marshal(struct{ R, S *big.Int }{new(big.Int).SetBytes(raw[:32]), new(big.Int).SetBytes(raw[32:])})
	payload := func(text string) string { return signRaw(t, key, own.Kid, text) }
	for name, token := range map[string]string{
		"none": b64(`{"alg":"none"}`) + "." + parts[1] + ".", "none with signature": b64(`{"alg":"none"}`) + "." + parts[1] + "." + parts[2],
		"HMAC with the public key": hmacWith(keys), "HMAC with the key's X": hmacWith([]byte(own.X)),
		"no signature": parts[0] + "." + parts[1] + ".", "two parts": parts[0] + "." + parts[1], "four parts": valid + ".x",
		"padding": parts[0] + "." + parts[1] + "." + parts[2] + "=", "other bits at the end": parts[0] + "." + parts[1] + "." + parts[2][:len(parts[2])-1] + "B",
		"ASN.1": parts[0] + "." + parts[1] + "." + base64.RawURLEncoding.EncodeToString(der), "zero": parts[0] + "." + parts[1] + "." + base64.RawURLEncoding.EncodeToString(make([]byte, 64)),
		"another key": sign(other, head(own.Kid), good()), "another key by its own kid": sign(other, head(foreign.Kid), good()),
		"jwk in the header":       sign(other, map[string]any{"typ": "at+jwt", "jwk": foreign}, good()),
		"jku in the header":       sign(other, map[string]any{"typ": "at+jwt", "jku": evil.URL, "x5u": evil.URL, "kid": foreign.Kid}, good()),
		"RSA's kid on an EC key":  sign(key, head(rsaOwn.Kid), good()),
		"critical extension":      sign(key, map[string]any{"typ": "at+jwt", "kid": own.Kid, "crit": []string{"b64"}, "b64": false}, good()),
		"an ID token":             sign(key, map[string]any{"typ": "id+jwt", "kid": own.Kid}, good()),
		"another issuer":          sign(key, head(own.Kid), with(func(c *jwtClaims) { c.Iss = "https://as.example/" })),
		"expired":                 sign(key, head(own.Kid), with(func(c *jwtClaims) { c.Exp = nowPlus(-60) })),
		"without end":             sign(key, head(own.Kid), with(func(c *jwtClaims) { c.Exp = 0 })),
		"not yet":                 sign(key, head(own.Kid), with(func(c *jwtClaims) { c.Nbf = nowPlus(600) })),
		"exp as text":             payload(fmt.Sprintf(`{"iss":"https://as.example","exp":"%d"}`, nowPlus(60))),
		"a claim twice":           payload(fmt.Sprintf(`{"iss":"https://as.example","exp":1,"exp":%d}`, nowPlus(60))),
		"a claim twice, unknown":  payload(fmt.Sprintf(`{"iss":"https://as.example","exp":%d,"x":1,"x":2}`, nowPlus(60))),
		"claims that are no JSON": payload(`{"iss":`), "claims that are no object": payload(`[]`), "": "", "dots": "..",
		"long": strings.Repeat("a", maxTokenLength) + "." + parts[1] + "." + parts[2],
	} {
		if info, err := verify(context.Background(), token); err == nil {
			t.Errorf("%s was taken: %+v", name, info)
		} else if len(token) > 20 && strings.Contains(err.Error(), token[:20]) {
			t.Errorf("%s: the token is in the error %v", name, err)
		}
	}
	for _, token := range []string{valid, sign(rsaKey, head(rsaOwn.Kid), good()), sign(key, map[string]any{}, good())} {
		info, err := verify(context.Background(), token)
		if err != nil || info.Subject != "ada" || !slices.Equal(info.Scopes, []string{"a", "b"}) || info.Audience[0] != "https://rs.example" {
			t.Errorf("a good token: %+v, %v", info, err)
		}
	}
	if fetched > 0 {
		t.Error("the token said where its keys are, and was believed")
	}
}

func signRaw(t *testing.T, key *ecdsa.PrivateKey, kid, payload string) string {
	token, err := signJWT(key, map[string]any{"typ": "at+jwt", "kid": kid}, json.RawMessage("{}"))
	if err != nil {
		t.Fatal(err)
	}
	signed := strings.Split(token, ".")[0] + "." + b64(payload)
	sum := sha256.Sum256([]byte(signed))
	r, s, _ := ecdsa.Sign(rand.Reader, key, sum[:])
	sig := make([]byte, 64)
	r.FillBytes(sig[:32])
	s.FillBytes(sig[32:])
	return signed + "." + base64.RawURLEncoding.EncodeToString(sig)
}

func TestAuthKeysOfNoUse(t *testing.T) {
	p := newKey(t)
	good, _ := webKeyOf(p.Public())
	change := func(f func(*webKey)) webKey { k := good; f(&k); return k }
	small, _ := rsa.GenerateKey(rand.Reader, 1024)
	for name, k := range map[string]webKey{
		"private": change(func(k *webKey) { k.D = "AQ" }), "not on the curve": change(func(k *webKey) { k.Y = k.X }), "short": change(func(k *webKey) { k.X = "AQ" }),
		"another curve": change(func(k *webKey) { k.Crv = "P-384" }), "for encryption": change(func(k *webKey) { k.Use = "enc" }), "another algorithm": change(func(k *webKey) { k.Alg = "RS256" }),
		"symmetric": {Kty: "oct"}, "empty": {}, "small": {Kty: "RSA", N: base64.RawURLEncoding.EncodeToString(small.N.Bytes()), E: "AQAB"}, "Ed448": {Kty: "OKP", Crv: "Ed448", X: good.X},
	} {
		if _, _, err := k.public(); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	p384, _ := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if _, err := webKeyOf(p384.Public()); err == nil {
		t.Error("P-384 is taken")
	}
	// The example of RFC 7638.
	k := webKey{Kty: "RSA", E: "AQAB", N: "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw"}
	if got := k.thumbprint(); got != "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs" {
		t.Error(got)
	}
}

// A key that is not known is looked for once a minute, however many tokens name
// it, and one fetch serves all who wait.
func TestAuthKeysAreFetchedRarely(t *testing.T) {
	shows(t, "ext.auth.ema.as-signature")
	key, next := newKey(t), newKey(t)
	keys, fetches := keySetOf(t, key), make(chan struct{}, 100)
	jwks := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fetches <- struct{}{}; w.Write(keys) }))
	defer jwks.Close()
	s := &keySource{url: jwks.URL, fetch: fetcher{local: true}}
	token := func(k *ecdsa.PrivateKey) *jwt {
		public, _ := webKeyOf(k.Public())
		text, _ := signJWT(k, map[string]any{"kid": public.Kid}, &jwtClaims{})
		parsed, err := parseJWT(text)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	results := make(chan error, 20)
	for range 20 {
		go func() { results <- s.verify(context.Background(), token(key)) }()
	}
	for range 20 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	for range 5 {
		if s.verify(context.Background(), token(next)) == nil {
			t.Error("an unknown key is good")
		}
	}
	if n := len(fetches); n != 1 {
		t.Errorf("%d fetches", n)
	}
	keys = keySetOf(t, next)
	s.tried, s.fetched = s.tried.Add(-2*time.Minute), s.fetched.Add(-2*time.Minute)
	if err := s.verify(context.Background(), token(next)); err != nil {
		t.Error("after rotation:", err)
	}
	jwks.Close()
	dead := &keySource{url: jwks.URL, fetch: fetcher{local: true}}
	var unavailable *unavailableError
	for range 2 {
		if err := dead.verify(context.Background(), token(key)); !errors.As(err, &unavailable) {
			t.Error(err)
		}
	}
}

// What a resource server answers to which token.
func TestFault67TokensAtTheResourceServer(t *testing.T) {
	shows(t, "auth.errors.status", "auth.prm.mechanism", "auth.prm.www-authenticate-2025-06", "auth.token.audience", "auth.token.no-other", "auth.scope.hierarchy", "auth.v0326.challenge", "auth.resource.case", "auth.resource.slash", "auth.scope-of-spec.http")
	infos := map[string]*TokenInfo{
		"good":     {Subject: "ada", Audience: []string{"https://rs.example/mcp"}, Scopes: []string{"read"}, Expires: time.Now().Add(time.Hour)},
		"slash":    {Subject: "ada", Audience: []string{"other", "HTTPS://RS.example/mcp"}, Scopes: []string{"admin"}},
		"expired":  {Subject: "ada", Audience: []string{"https://rs.example/mcp"}, Scopes: []string{"read"}, Expires: time.Now().Add(-time.Second)},
		"others":   {Subject: "ada", Audience: []string{"https://rs.example/mcp2"}, Scopes: []string{"read"}},
		"prefix":   {Subject: "ada", Audience: []string{"https://rs.example"}, Scopes: []string{"read"}},
		"audience": {Subject: "ada", Scopes: []string{"read"}},
		"scopes":   {Subject: "ada", Audience: []string{"https://rs.example/mcp"}, Scopes: []string{"write"}},
	}
	reached := 0
	h := RequireBearer(BearerOptions{
		Resource: "https://rs.example/mcp", Scopes: []string{"read"}, Implies: func(has, wanted string) bool { return has == "admin" },
		Verify: func(_ context.Context, token string) (*TokenInfo, error) {
			switch token {
			case "error":
				return nil, errors.New("no such secret-token")
			case "panic":
				panic("secret-token")
			case "away":
				return nil, &unavailableError{errors.New("the issuer is away")}
			}
			return infos[token], nil
		},
	})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if reached++; r.Method != http.MethodOptions && TokenInfoFrom(r.Context()).Subject != "ada" {
			t.Error("who is it?")
		}
	}))
	const where = `resource_metadata="https://rs.example/.well-known/oauth-protected-resource/mcp"`
	for _, c := range []struct {
		name    string
		headers []string
		target  string
		status  int
		says    string
	}{
		{"none", nil, "/mcp", 401, `Bearer scope="read", ` + where},
		{"in the query", nil, "/mcp?access_token=good", 401, `Bearer scope="read", ` + where},
		{"another scheme", []string{"Basic Z29vZA=="}, "/mcp", 401, `Bearer scope="read", ` + where},
		{"good", []string{"Bearer good"}, "/mcp", 200, ""},
		{"lower case", []string{"bearer  good"}, "/mcp", 200, ""},
		{"case and hierarchy", []string{"Bearer slash"}, "/mcp", 200, ""},
		{"empty", []string{"Bearer "}, "/mcp", 400, `Bearer error="invalid_request", error_description="the token is malformed", ` + where},
		{"odd", []string{"Bearer a b"}, "/mcp", 400, `error="invalid_request"`},
		{"two", []string{"Bearer good", "Bearer good"}, "/mcp", 400, `error="invalid_request"`},
		{"expired", []string{"Bearer expired"}, "/mcp", 401, `Bearer error="invalid_token", error_description="the token has expired", scope="read", ` + where},
		{"for another", []string{"Bearer others"}, "/mcp", 401, `error="invalid_token"`},
		{"for all", []string{"Bearer prefix"}, "/mcp", 401, `error="invalid_token"`},
		{"for nobody", []string{"Bearer audience"}, "/mcp", 401, `error="invalid_token"`},
		{"unknown", []string{"Bearer unknown"}, "/mcp", 401, `error="invalid_token"`},
		{"error", []string{"Bearer error"}, "/mcp", 401, `error="invalid_token"`},
		{"panic", []string{"Bearer panic"}, "/mcp", 401, `error="invalid_token"`},
		{"away", []string{"Bearer away"}, "/mcp", 503, ""},
		{"scopes", []string{"Bearer scopes"}, "/mcp", 403, `Bearer error="insufficient_scope", scope="read", ` + where},
		{"no proof wanted", []string{"DPoP good"}, "/mcp", 401, `DPoP error="invalid_token"`},
	} {
		before := reached
		r := httptest.NewRequest(http.MethodPost, c.target, strings.NewReader("{}"))
		for _, v := range c.headers {
			r.Header.Add("Authorization", v)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		says := w.Header().Get("WWW-Authenticate")
		if w.Code != c.status || !strings.Contains(says, c.says) || (c.says == "") != (says == "") || (reached > before) != (c.status == 200) || strings.Contains(says+w.Body.String(), "secret-token") {
			t.Errorf("%s: %d %s %s", c.name, w.Code, says, w.Body)
		}
	}
	r := httptest.NewRequest(http.MethodOptions, "/mcp", nil)
	r.Header.Set("Access-Control-Request-Method", "POST")
	before := reached
	if h.ServeHTTP(httptest.NewRecorder(), r); reached != before+1 {
		t.Error("a browser cannot ask whether it may send a token")
	}
	for _, bad := range []BearerOptions{{}, {Resource: "https://x"}, {Resource: "http://x", Verify: func(context.Context, string) (*TokenInfo, error) { return nil, nil }}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%+v is taken", bad)
				}
			}()
			RequireBearer(bad)
		}()
	}
}

// Proofs of possession that are not right (RFC 9449 § 4.3).
func TestAuthProofsThatAreWrong(t *testing.T) {
	shows(t, "ext.auth.dpop.server-reject", "ext.auth.dpop.server-iat", "ext.auth.dpop.server-replay", "ext.auth.dpop.server-validate", "ext.auth.dpop.asymmetric", "ext.auth.dpop.conform")
	key, other := newKey(t), newKey(t)
	public, _ := webKeyOf(key.Public())
	at, _ := url.Parse("https://rs.example/mcp")
	h := RequireBearer(BearerOptions{Resource: at.String(), Verify: func(_ context.Context, token string) (*TokenInfo, error) {
		info := &TokenInfo{Subject: "ada", Audience: []string{at.String()}}
		if token == "bound" {
			info.KeyThumbprint = public.thumbprint()
		}
		return info, nil
	}})(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	do := func(authorization string, proofs ...string) (int, string) {
		r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
		r.Header.Set("Authorization", authorization)
		for _, p := range proofs {
			r.Header.Add("DPoP", p)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code, w.Header().Get("WWW-Authenticate")
	}
	proof := func(method, where, token string) string {
		u, _ := url.Parse(where)
		p, err := signProof(key, method, u, token, "")
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	custom := func(k *ecdsa.PrivateKey, header map[string]any, change func(*jwtClaims)) string {
		c := jwtClaims{Jti: randomText(), Htm: "POST", Htu: at.String(), Iat: nowPlus(0), Ath: tokenHash("bound")}
		change(&c)
		p, _ := signJWT(k, header, &c)
		return p
	}
	pub := public
	pub.Kid, pub.Use = "", ""
	head := map[string]any{"typ": "dpop+jwt", "jwk": pub}
	good := proof("POST", "https://RS.example:443/mcp?q=1#f", "bound")
	if code, says := do("DPoP bound", good); code != 200 {
		t.Errorf("a good proof: %d %s", code, says)
	}
	private := pub
	private.D = "AQ"
	foreign, _ := signProof(other, "POST", at, "bound", "")
	for name, c := range map[string]struct {
		authorization string
		proofs        []string
	}{
		"again": {"DPoP bound", []string{good}}, "none": {"DPoP bound", nil}, "two": {"DPoP bound", []string{proof("POST", at.String(), "bound"), proof("POST", at.String(), "bound")}},
		"as bearer": {"Bearer bound", []string{proof("POST", at.String(), "bound")}}, "token without a key": {"DPoP free", []string{proof("POST", at.String(), "free")}},
		"another method": {"DPoP bound", []string{proof("GET", at.String(), "bound")}}, "another URL": {"DPoP bound", []string{proof("POST", "https://rs.example/mcp2", "bound")}},
		"another token": {"DPoP bound", []string{proof("POST", at.String(), "else")}}, "no token": {"DPoP bound", []string{proof("POST", at.String(), "")}}, "another key": {"DPoP bound", []string{foreign}},
		"old": {"DPoP bound", []string{custom(key, head, func(c *jwtClaims) { c.Iat = nowPlus(-301) })}}, "from the future": {"DPoP bound", []string{custom(key, head, func(c *jwtClaims) { c.Iat = nowPlus(302) })}},
		"without time": {"DPoP bound", []string{custom(key, head, func(c *jwtClaims) { c.Iat = 0 })}}, "without jti": {"DPoP bound", []string{custom(key, head, func(c *jwtClaims) { c.Jti = "" })}},
		"another type": {"DPoP bound", []string{custom(key, map[string]any{"typ": "jwt", "jwk": pub}, func(*jwtClaims) {})}}, "no jwk": {"DPoP bound", []string{custom(key, map[string]any{"typ": "dpop+jwt"}, func(*jwtClaims) {})}},
		"private jwk": {"DPoP bound", []string{custom(key, map[string]any{"typ": "dpop+jwt", "jwk": private}, func(*jwtClaims) {})}}, "signed by another": {"DPoP bound", []string{custom(other, head, func(*jwtClaims) {})}},
		"no JWT": {"DPoP bound", []string{"x"}}, "none as algorithm": {"DPoP bound", []string{b64(`{"typ":"dpop+jwt","alg":"none","jwk":{}}`) + "." + b64("{}") + "."}},
	} {
		if code, says := do(c.authorization, c.proofs...); code != 401 || !strings.HasPrefix(says, "DPoP ") && !strings.HasPrefix(c.authorization, "Bearer") {
			t.Errorf("%s: %d %s", name, code, says)
		}
	}
}

// One key cannot use up the memory for the proofs of all.
func TestAuthProofsOfOneKeyAreBounded(t *testing.T) {
	var c proofChecker
	for i := range maxProofsOfKey {
		if !c.spend("mine", fmt.Sprint(i)) {
			t.Fatal(i)
		}
	}
	if c.spend("mine", "more") || c.spend("mine", "1") || !c.spend("yours", "1") {
		t.Error("the bound of one key is another's, or none")
	}
}

// An issuer that is away is not asked again for every token that names it.
func TestAuthIssuerThatIsAway(t *testing.T) {
	asked := 0
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked++; w.WriteHeader(503) }))
	defer issuer.Close()
	token, err := signJWT(newKey(t), map[string]any{"typ": "at+jwt"}, &jwtClaims{Iss: issuer.URL, Exp: nowPlus(60)})
	if err != nil {
		t.Fatal(err)
	}
	verify := JWTVerifier(JWTOptions{Issuer: issuer.URL})
	var unavailable *unavailableError
	for range 5 {
		if _, err := verify(context.Background(), token); !errors.As(err, &unavailable) {
			t.Error(err)
		}
	}
	if asked > 3 {
		t.Errorf("asked %d times", asked)
	}
}

func TestAuthMetadataOfTheResource(t *testing.T) {
	shows(t, "auth.prm.server", "auth.prm.as-list", "auth.refresh.server-no-offline")
	h := ResourceMetadataHandler(ResourceMetadata{Resource: "https://rs.example/a/mcp", AuthorizationServers: []string{"https://as.example"}, ScopesSupported: []string{"read"}})
	for path, status := range map[string]int{"/.well-known/oauth-protected-resource": 200, "/.well-known/oauth-protected-resource/": 200, "/.well-known/oauth-protected-resource/a/mcp": 200, "/.well-known/oauth-protected-resource/b": 404} {
		for _, method := range []string{"GET", "HEAD", "OPTIONS", "POST"} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
			want := status
			if status == 200 {
				want = map[string]int{"GET": 200, "HEAD": 200, "OPTIONS": 204, "POST": 405}[method]
				if w.Header().Get("Access-Control-Allow-Origin") != "*" {
					t.Errorf("%s %s: no page can read it", method, path)
				}
			}
			if w.Code != want {
				t.Errorf("%s %s: %d", method, path, w.Code)
			}
			if method == "GET" && want == 200 {
				var got map[string]any
				json.Unmarshal(w.Body.Bytes(), &got)
				if wanted := map[string]any{"resource": "https://rs.example/a/mcp", "authorization_servers": []any{"https://as.example"}, "scopes_supported": []any{"read"}, "bearer_methods_supported": []any{"header"}}; !reflect.DeepEqual(got, wanted) {
					t.Errorf("%v", got)
				}
			}
		}
	}
}

// What is fetched for a peer stays within bounds (the cases of server-side request
// forgery).
func TestAuthFetchesStayOutside(t *testing.T) {
	shows(t, "secbp.ssrf.consider", "secbp.ssrf.https", "secbp.ssrf.private", "secbp.ssrf.redirect", "secbp.url.sanitise", "secbp.url.scheme", "auth.comm.https")
	for _, raw := range []string{"", "x", "/x", "http://example.com", "http://10.0.0.1/x", "ftp://localhost/x", "javascript:alert(1)", "data:,x", "file:///etc/passwd", "vbscript:x", "https://", "https://u:p@example.com", "https://example.com/#f", "https:example.com", "http://localhost.example.com/", "http://127.0.0.1.example.com/"} {
		if _, err := checkURL(raw); err == nil {
			t.Errorf("%q is taken", raw)
		}
	}
	f := &fetcher{}
	for _, raw := range []string{"https://10.1.2.3/x", "https://192.168.1.1/", "https://169.254.169.254/latest", "https://[fd00::1]/", "https://[fe80::1]/", "https://0.0.0.0/", "https://[::ffff:10.0.0.1]/", "https://224.0.0.1/",
		"https://100.100.100.200/latest", "https://0.1.2.3/", "https://192.0.0.192/", "https://198.18.0.1/", "https://240.0.0.1/", "https://[64:ff9b::a9fe:a9fe]/", "https://[64:ff9b:1::1]/", "https://[2002:a00:1::]/", "https://[::10.0.0.1]/", "https://[fec0::1]/"} {
		if _, _, _, err := f.get(context.Background(), raw); err == nil || !strings.Contains(err.Error(), "not public") {
			t.Errorf("%s: %v", raw, err)
		}
	}
	secrets := 0
	inner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" || r.Header.Get("Cookie") != "" {
			secrets++
		}
		switch r.URL.Path {
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case "/out":
			http.Redirect(w, r, "http://example.com/", http.StatusFound)
		case "/long":
			w.Write(make([]byte, maxFetch+1))
		default:
			w.Write([]byte("{}"))
		}
	}))
	defer inner.Close()
	if _, _, _, err := f.get(context.Background(), inner.URL); err == nil {
		t.Error("a loopback address was reached")
	}
	near := &fetcher{local: true}
	for path, ok := range map[string]bool{"/loop": false, "/out": false, "/long": false, "/": true} {
		if _, _, _, err := near.get(context.Background(), inner.URL+path); (err == nil) != ok {
			t.Errorf("%s: %v", path, err)
		}
	}
	public := httptest.NewTLSServer(http.RedirectHandler(inner.URL+"/", http.StatusFound))
	defer public.Close()
	outside := &fetcher{client: public.Client()}
	c := outside.clientFor(&url.URL{Scheme: "https", Host: "as.example"})
	r, _ := http.NewRequest(http.MethodGet, inner.URL, nil)
	if c.CheckRedirect(r, nil) == nil {
		t.Error("a public server may redirect to a loopback address")
	}
	if secrets > 0 {
		t.Error("credentials were sent")
	}
}

func TestAuthIntrospection(t *testing.T) {
	var answer string
	var sent url.Values
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.ParseForm()
		sent = r.Form
		if user, password, ok := r.BasicAuth(); !ok || user != "rs" || password != "p" || answer == "500" {
			w.WriteHeader(500)
			return
		}
		w.Write([]byte(answer))
	}))
	defer server.Close()
	verify := IntrospectionVerifier(IntrospectionOptions{URL: server.URL, ClientID: "rs", ClientSecret: "p", Issuer: "https://as"})
	for text, ok := range map[string]bool{
		`{"active":true,"sub":"ada","aud":"https://rs","scope":"a b","client_id":"c","exp":99999999999,"token_type":"Bearer","username":null}`: true,
		`{"active":true,"iss":"https://as","aud":["https://rs"]}`:                                                                              true, `{"active":true,"iss":"https://other"}`: false, `{"active":false,"sub":"ada"}`: false, `{}`: false, `{"Active":true}`: false,
	} {
		answer = text
		info, err := verify(context.Background(), "the-token")
		if (err == nil) != ok || sent.Get("token") != "the-token" {
			t.Errorf("%s: %+v, %v", text, info, err)
		}
		if ok && (info.Issuer != "https://as" || info.Audience[0] != "https://rs") {
			t.Errorf("%s: %+v", text, info)
		}
	}
	for _, text := range []string{"500", "no JSON", `{"active":true,"active":true}`} {
		answer = text
		var unavailable *unavailableError
		if _, err := verify(context.Background(), "t"); !errors.As(err, &unavailable) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func FuzzJWT(f *testing.F) {
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	token, _ := signJWT(key, map[string]any{"typ": "at+jwt"}, &jwtClaims{Iss: "i", Aud: stringOrSet{"a", "b"}, Exp: 1})
	f.Add(token)
	f.Add("e30.e30.")
	f.Add(b64(`{"alg":"ES256","jwk":{"kty":"EC"}}`) + "." + b64(`{"aud":[],"exp":1e3,"cnf":{"jkt":null}}`) + ".AA")
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := parseJWT(text)
		if err != nil {
			return
		}
		if text != token && parsed.verify(&key.PublicKey, "ES256") == nil {
			t.Errorf("forged: %s", text)
		}
		parsed.claims.valid(time.Now())
	})
}

func FuzzOAuthDocument(f *testing.F) {
	f.Add([]byte(`{"issuer":"https://as","token_endpoint":"https://as/t","scopes_supported":["a",null]}`))
	f.Add([]byte(`{"keys":[{"kty":"EC","crv":"P-256","x":"","y":""},null,5]}`))
	f.Add([]byte(`{"access_token":"a","expires_in":"3600","token_type":null}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		var m AuthServerMetadata
		var r ResourceMetadata
		var c ClientMetadata
		decodeOAuth(doc, &m)
		decodeOAuth(doc, &r)
		decodeOAuth(doc, &c)
		parseKeySet(doc)
		introspected(doc, "i")
		if reply, err := readTokenReply(200, http.Header{}, doc); err == nil && (reply.access == "" || reply.lifetime < 0) {
			t.Errorf("%s: %+v", doc, reply)
		}
	})
}

func TestAuthPublicAddresses(t *testing.T) {
	for address, want := range map[string]bool{
		"8.8.8.8": true, "2606:4700::1111": true, "::ffff:8.8.8.8": true, "64:ff9b::808:808": true, "100.63.255.255": true, "100.128.0.1": true,
		"64:ff9b::7f00:1": false, "64:ff9b::a00:1": false, "100.64.0.1": false, "2002:7f00:1::": false, "fe80::1%1": false, "::1": false, "fec0::1%1": false,
	} {
		if got := publicAddress(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: public is %v", address, got)
		}
	}
}

func TestAuthIntrospectionFollowsNobody(t *testing.T) {
	asked := false
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = true
		fmt.Fprint(w, `{"active":true,"sub":"eve","aud":"https://r.example"}`)
	}))
	defer other.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		server := httptest.NewServer(http.RedirectHandler(other.URL, status))
		_, err := IntrospectionVerifier(IntrospectionOptions{URL: server.URL, ClientID: "r", ClientSecret: "s"})(context.Background(), "token")
		server.Close()
		var unavailable *unavailableError
		if !errors.As(err, &unavailable) || asked {
			t.Errorf("%d: error %v, asked elsewhere: %v", status, err, asked)
		}
	}
}
