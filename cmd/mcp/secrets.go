package main

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
)

const hidden = "[hidden]"

// minSecret is the length in bytes from which on a secret that was given on
// the command line is looked for: shorter ones are in any text.
const minSecret = 6

// secretNames are how the names of what nobody should see end, without "-",
// "_" and capitals.
var secretNames = []string{
	"authorization", "cookie", "password", "passwd", "passphrase", "secret", "token", "apikey", "privatekey",
	"credential", "credentials", "sessionid", "assertion", "codeverifier",
}

var plainName = strings.NewReplacer("-", "", "_", "")

// isSecret reports whether what has this name is secret: a member, a header,
// a parameter of a URL. The token of a call's progress is none.
func isSecret(name string) bool {
	name = plainName.Replace(strings.ToLower(name))
	for _, end := range secretNames {
		if strings.HasSuffix(name, end) {
			return name != "progresstoken"
		}
	}
	return false
}

// secretInURL is isSecret for the parameters of a URL, where short names are
// common.
func secretInURL(name string) bool {
	switch name = strings.ToLower(name); name {
	case "code", "key", "sig", "auth", "session":
		return true
	}
	return isSecret(name) || strings.HasSuffix(name, "signature")
}

var (
	credentials = regexp.MustCompile(`(?i)\b(bearer|basic|dpop) +[a-z0-9._~+/=-]{6,}`)
	userinfo    = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^\s/?#"'<>@]+@`)
	parameter   = regexp.MustCompile(`([?&#;])([A-Za-z0-9_.-]+)=([^\s&#;"'<>]+)`)
)

// hideText replaces what is secret in a text: in URLs, after the name of a
// scheme of authorization, in JSON.
func hideText(text string) string {
	if trimmed := strings.TrimSpace(text); strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[") {
		if shown, ok := hideJSON([]byte(text)); ok {
			return string(shown)
		}
	}
	text = credentials.ReplaceAllString(text, "$1 "+hidden)
	text = userinfo.ReplaceAllString(text, "$1"+hidden+"@")
	return parameter.ReplaceAllStringFunc(text, func(found string) string {
		parts := parameter.FindStringSubmatch(found)
		if !secretInURL(parts[2]) {
			return found
		}
		return parts[1] + parts[2] + "=" + hidden
	})
}

// hideJSON returns a JSON text on one line without what is secret in it, and
// false if it is not JSON.
func hideJSON(text []byte) ([]byte, bool) {
	if !json.Valid(text) {
		return nil, false
	}
	h := hider{d: json.NewDecoder(bytes.NewReader(text))}
	h.d.UseNumber()
	h.value(false)
	return h.out.Bytes(), true
}

// replacer hides texts wherever they stand.
func replacer(secrets []string) *strings.Replacer {
	var pairs []string
	for _, secret := range secrets {
		pairs = append(pairs, secret, hidden)
	}
	return strings.NewReplacer(pairs...)
}

type hider struct {
	d   *json.Decoder
	out bytes.Buffer
}

// value copies the next value; a secret one that is a text or a number it
// hides.
func (h *hider) value(secret bool) {
	token, _ := h.d.Token() // the text is valid
	switch v := token.(type) {
	case json.Delim:
		h.out.WriteString(v.String())
		for n := 0; h.d.More(); n++ {
			if n > 0 {
				h.out.WriteByte(',')
			}
			of := secret
			if v == '{' {
				name, _ := h.d.Token()
				h.text(name.(string))
				h.out.WriteByte(':')
				of = isSecret(name.(string))
			}
			h.value(of)
		}
		end, _ := h.d.Token()
		h.out.WriteString(end.(json.Delim).String())
	case string:
		if secret {
			v = hidden
		}
		h.text(hideText(v))
	case json.Number:
		if secret {
			h.text(hidden)
			return
		}
		h.out.WriteString(v.String())
	default:
		encoded, _ := json.Marshal(v) // true, false or null
		h.out.Write(encoded)
	}
}

func (h *hider) text(s string) {
	e := json.NewEncoder(&h.out)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string can be encoded
	h.out.Truncate(h.out.Len() - 1)
}
