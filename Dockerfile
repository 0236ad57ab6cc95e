# One image for every process of the host; docker-compose.yml says which command each one runs.
ARG PYTHON_VERSION=3.11
FROM python:${PYTHON_VERSION}-slim

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /host

# The requirements change less often than the code: a layer of their own.
COPY requirements.txt .
COPY requirements-sso.txt .
# --build-arg SSO=1: with single sign-on and the second factor of the admin.
ARG SSO=
RUN pip install --requirement requirements.txt ${SSO:+--requirement requirements-sso.txt}

COPY manage.py ./
COPY a2a_host a2a_host
COPY a2a_project a2a_project
COPY a2a_tasks a2a_tasks
COPY a2a_push a2a_push
COPY a2a_console a2a_console
COPY deploy deploy
COPY examples examples
COPY templates templates
RUN python -m compileall -q a2a_project a2a_console a2a_push a2a_tasks examples

RUN useradd --system --uid 10001 --no-create-home host \
    && install --directory --owner=10001 --mode=700 /srv/files
USER 10001
EXPOSE 8000 50051
CMD ["python", "manage.py", "serve"]
