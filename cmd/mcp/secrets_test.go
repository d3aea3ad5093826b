package main

import "testing"

func TestHideText(t *testing.T) {
	for text, want := range map[string]string{
		"nothing at all":                                                 "nothing at all",
		"https://me:pass@host/a?token=t0k&x=1#y":                         `https://[hidden]@host/a?token=[hidden]&x=1#y`,
		"GET /cb?code=abc&state=s&api_key=k":                             `GET /cb?code=[hidden]&state=s&api_key=[hidden]`,
		"/sse?sessionId=12ab":                                            "/sse?sessionId=[hidden]",
		"Authorization: Bearer abc.def-ghi":                              "Authorization: Bearer [hidden]",
		"the bearer of news":                                             "the bearer of news",
		`{"a":1,"password":"x","b":[true,null,1.50]}`:                    `{"a":1,"password":"[hidden]","b":[true,null,1.50]}`,
		`{"access_token":"x","refreshToken":"y","api-key":7}`:            `{"access_token":"[hidden]","refreshToken":"[hidden]","api-key":"[hidden]"}`,
		`{"progressToken":3,"nested":{"Client_Secret":["x"]}}`:           `{"progressToken":3,"nested":{"Client_Secret":["[hidden]"]}}`,
		`{"properties":{"password":{"type":"string"}}}`:                  `{"properties":{"password":{"type":"string"}}}`,
		`{"text":"{\"secret\":\"x\"}","b":"<&>","big":9007199254740993}`: `{"text":"{\"secret\":\"[hidden]\"}","b":"<&>","big":9007199254740993}`,
		`{"headers":{"Cookie":"a=b"},"uri":"http://h/?sig=1"}`:           `{"headers":{"Cookie":"[hidden]"},"uri":"http://h/?sig=[hidden]"}`,
		"{broken": "{broken",
	} {
		if got := hideText(text); got != want {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
	}
}
