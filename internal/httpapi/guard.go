package httpapi

// untrusted is the answer to what is not for this server, or comes from another site's page.
const untrusted = "refused: this request names a host that is not this server, or comes from another site's page (see --allow-host)"
