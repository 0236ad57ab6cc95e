"""The index that finds the newest of many conversations that begin alike, in place of that of the digest alone."""

from django.db import migrations, models

from a2a_tasks.migrations._patience import AddIndexPatiently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [('a2a_tasks', '0023_chat_prefixes')]

    operations = [
        AddIndexPatiently(model_name='chatprefix', index=models.Index(models.F('digest'), models.F('updated_at'), name='chat_prefix_newest')),
        migrations.RemoveIndex(model_name='chatprefix', name='chat_prefix_digest'),
    ]
