"use strict";

// The page of the management API: Swagger UI, with the session of the admin and its CSRF token.
const page = document.getElementById("api-docs");

SwaggerUIBundle({
  url: page.dataset.description,
  domNode: page,
  deepLinking: true,
  validatorUrl: null, // no request to another host
  requestInterceptor: (request) => {
    if (new URL(request.url, location.href).origin === location.origin) {
      request.headers["X-CSRFToken"] = page.dataset.csrf;
    }
    return request;
  },
});

// Swagger UI has a dark look, which it does not choose by itself.
const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", follow);
follow();
