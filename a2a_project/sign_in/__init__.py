"""Sign-in to the admin by single sign-on and with a second factor: an extra (requirements-sso.txt), off by default.

Nothing here is imported unless `A2A_SSO_OIDC_ISSUER` or `A2A_ADMIN_MFA` is set (docs/decisions/0015).
"""
